"""An object store in memory, as different from a directory as possible: no folders, two spellings, two endpoints.

Like one on another machine, it needs a request to find out whether a file is missing, and engines need settings to
reach it. All its files are in this process, as are the keys that it knows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Event
from typing import ClassVar, Literal

from pydantic import AliasChoices, Field, SecretStr

from lakewarden.config import StorageConfig
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientAccess
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import AccessDenied, FileMissing, FileTaken, OutOfReach, Storage, StorageError
from lakewarden.storage.places import is_at_or_in, is_in
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.removal import Found, Removed

SPELLINGS = ("bucket://", "bucketa://")
VERSIONS = count()


@dataclass(frozen=True, slots=True)
class _Object:
    content: bytes
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    version: str = field(default_factory=lambda: str(next(VERSIONS)))


OBJECTS: dict[str, _Object] = {}
"""By their locations in the normal form."""
VERBS = frozenset({"read", "write", "list", "delete"})
KEYS: dict[str, tuple[str, frozenset[str]]] = {}
"""The secret of each key, and what it may do."""
LEAKS: set[str] = set()
"""What keys that were issued for one table may do everywhere, in a store that enforces nothing."""
HANGING = Event()
"""While it is set, the store answers nothing."""
RELEASED = Event()
"""Ends all calls that hang."""


def forget() -> None:
    """For the end of a test."""
    OBJECTS.clear()
    KEYS.clear()
    LEAKS.clear()
    HANGING.clear()
    RELEASED.clear()


def _normal(location: str) -> str:
    scheme = next((each for each in SPELLINGS if location.startswith(each)), None)
    if scheme is None:
        raise StorageError(f"{location!r} is not a bucket:// location")
    if ".." in location.split("/"):
        raise StorageError(f"{location!r} contains '..'")
    return "bucket://" + location.removeprefix(scheme).rstrip("/")


@dataclass(frozen=True, slots=True)
class _Rights:
    verbs: frozenset[str] = VERBS
    within: str | None = None
    leaks: bool = False

    def ensure(self, verb: str, place: str) -> None:
        if HANGING.is_set():
            RELEASED.wait(60)
        is_inside = self.within is None or is_at_or_in(place, self.within)
        if not (is_inside and verb in self.verbs) and not (self.leaks and verb in LEAKS):
            raise AccessDenied(f"The key may not {verb} at {place}: give it the right to")


class BucketKey(StorageCredential):
    FAMILY: ClassVar = "bucket"
    KIND: ClassVar = "key"

    name: str
    secret: SecretStr = Field(validation_alias=AliasChoices("secret", "bucket-secret"))


class BucketProfile(StorageProfile):
    LONGEST_NAME: ClassVar = 1024
    PLACE_FIELDS: ClassVar = ("bucket", "key-prefix")
    SEES_MISSING_FILES: ClassVar = False
    CLIENTS_NEED_CONFIG: ClassVar = True
    CREDENTIALS: ClassVar[tuple[type[StorageCredential], ...]] = (BucketKey,)

    type: Literal["bucket"]
    bucket: str
    key_prefix: str = Field("", alias="key-prefix")
    endpoint: str = "http://one"
    issues_keys: bool = Field(False, alias="issues-keys")

    @property
    def location(self) -> str:
        """The same by whichever endpoint it is reached."""
        return f"bucket://{self.bucket}/{self.key_prefix}".rstrip("/")

    def normal(self, location: str) -> str:
        return _normal(location)

    def ensure_allowed(self, settings: StorageConfig) -> None:
        pass

    def open(self, credential: StorageCredential | None) -> Storage:
        return self._with(_Rights() if credential is None else _known(credential))

    def open_as_engine(self, access: ClientAccess) -> Storage:
        level, place = access.credentials["bucket.key"].split(" ", 1)
        verbs = VERBS if level == AccessLevel.WRITE else frozenset({"read", "list"})
        return self._with(_Rights(verbs, place, leaks=True))

    def _with(self, rights: _Rights) -> Storage:
        return BucketStorage(self.location, self.endpoint, rights, issues_keys=self.issues_keys)


def _known(credential: StorageCredential) -> _Rights:
    assert isinstance(credential, BucketKey)
    secret, verbs = KEYS.get(credential.name, (None, frozenset()))
    if secret != credential.secret.get_secret_value():
        raise AccessDenied(f"The key {credential.name!r} is not known, or its secret is wrong: check both")
    return _Rights(verbs)


class BucketStorage:
    def __init__(self, base: str, endpoint: str, rights: _Rights | None = None, *, issues_keys: bool = False) -> None:
        self._base, self._endpoint, self._issues_keys = base, endpoint, issues_keys
        self._rights = rights or _Rights()

    def write_new(self, location: str, content: bytes) -> None:
        place = self._asked("write", location)
        if place in OBJECTS:
            raise FileTaken(f"A file already exists at {location}")
        OBJECTS[place] = _Object(content)

    def read(self, location: str, *, limit: int) -> bytes:
        found = OBJECTS.get(self._asked("read", location))
        if found is None:
            raise FileMissing(f"No file at {location}")
        if len(found.content) > limit:
            raise StorageError(f"The file {location} is larger than {limit} bytes")
        return found.content

    def delete(self, location: str) -> None:
        OBJECTS.pop(self._asked("delete", location), None)

    def is_known_missing(self, location: str) -> bool:  # noqa: ARG002 only a request would tell
        return False

    def is_empty(self, location: str, *, since: datetime | None = None) -> bool:
        below = [OBJECTS[each] for each in self._below(self._asked("list", location))]
        return not any(since is None or each.at < since for each in below)

    def survey(self, location: str, *, within: str) -> Iterator[Found]:
        place, kept = self._place(location), self._place(within)
        if not is_in(place, kept):
            raise StorageError(f"{location} is not below {within}: it is never deleted")
        for each in self._below(place):
            found = OBJECTS[each]
            yield Found(each.removeprefix(f"{kept}/"), len(found.content), found.version)

    def folders(self, location: str) -> Iterator[str]:
        place = self._asked("list", location)
        below = [each.removeprefix(f"{place}/") for each in self._below(place)]
        yield from sorted({each.partition("/")[0] for each in below if "/" in each})

    def remove(self, found: Sequence[Found], *, within: str, at_once: int) -> Removed:  # noqa: ARG002 nothing waits
        outcome, kept = Removed(), self._place(within)
        for each in found:
            there = OBJECTS.get(f"{kept}/{each.path}")
            if there is None:
                outcome.missing.append(each)
            elif there.version == each.version:
                del OBJECTS[f"{kept}/{each.path}"]
                outcome.gone.append(each)
        return outcome

    def ensure_there(self) -> None:
        if not self._below(self._base):
            raise StorageError(f"The bucket at {self._base} is empty")

    def client_access(self, request: AccessRequest) -> ClientAccess:
        token = f"{request.level} {self._place(request.location)}"
        config = {"bucket.endpoint": self._endpoint, "bucket.token": token}
        if not self._issues_keys:
            return ClientAccess(config)
        return ClientAccess(config, {"bucket.key": token}, datetime.now(UTC) + timedelta(hours=1))

    def nearest_folder(self, location: str) -> str:
        return self._place(location)

    def make_folder(self, location: str) -> None:
        self._place(location)  # there are no folders

    def remove_empty(self, location: str, *, inside: str) -> None:
        """There are no folders."""

    def _asked(self, verb: str, location: str) -> str:
        place = self._place(location)
        self._rights.ensure(verb, place)
        return place

    def _place(self, location: str) -> str:
        place = _normal(location)
        if not is_at_or_in(place, self._base):
            raise OutOfReach(f"{location} is outside {self._base}")
        return place

    def _below(self, place: str) -> list[str]:
        return sorted(each for each in OBJECTS if is_at_or_in(each, place))
