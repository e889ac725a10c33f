"""The client for OpenFGA, on top of its SDK, whose errors it turns into Unavailable. Nothing else calls OpenFGA.

A client belongs to one store, keeps its connections open and is thread-safe.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import urllib3
from openfga_sdk.client.configuration import ClientConfiguration
from openfga_sdk.configuration import RetryParams
from openfga_sdk.credentials import CredentialConfiguration, Credentials
from openfga_sdk.exceptions import ApiException, NotFoundException, OpenApiException
from openfga_sdk.sync.api_client import ApiClient
from openfga_sdk.sync.open_fga_api import OpenFgaApi

from lakewarden.authz.openfga.tuples import RelationTuple
from lakewarden.config import OpenFgaConfig
from lakewarden.errors import Unavailable

logger = logging.getLogger(__name__)

MOST_WRITTEN: Final = 100
"""Tuples in one write, at most: the server's default limit."""
MOST_CONTEXTUAL: Final = 100
"""Contextual tuples in one check, at most: the server's limit."""
_PAGE: Final = 100
_EXACT: Final = "HIGHER_CONSISTENCY"
_TRUSTED_PART: Final = 0.8
_CHUNK: Final = 64 * 1024

# the last four: the SDK and this module raise them for answers that are not OpenFGA's, such as a proxy's error page
_FAILURES: Final = (
    OpenApiException,
    urllib3.exceptions.HTTPError,
    OSError,
    ValueError,
    AttributeError,
    TypeError,
    LookupError,
)


@dataclass(frozen=True, slots=True)
class Store:
    """A store on the server, and the version of the model that is used in it."""

    id: str
    model_id: str = ""


class OpenFga:
    """`store` is the store that all methods use, except those that create and find stores."""

    def __init__(self, settings: OpenFgaConfig, store: Store | None = None) -> None:
        self._url = (settings.api_url or "").rstrip("/")
        self._timeout_s = settings.timeout_s
        self._store = store or Store("")
        token = None if settings.api_token is None else settings.api_token.get_secret_value()
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        # the SDK's `OpenFgaClient` starts threads for each batch; the classes below it do not
        self._client: Any = ApiClient(_configuration(self._url, self._store, token, settings.timeout_s))  # type: ignore[no-untyped-call]
        self._api: Any = OpenFgaApi(self._client)  # type: ignore[no-untyped-call]

    def close(self) -> None:
        self._api.close()

    def held(
        self, user: str, relations: Sequence[str], target: str, *, context: Sequence[RelationTuple]
    ) -> frozenset[str]:
        """Those of the relations (50 at most) that the user has to `target`; `context` are tuples that count in
        addition.

        Raises Unavailable, also if the server could not decide on one of them.
        """
        tuples = {"tuple_keys": [each.plain() for each in context]}
        checks = [
            {
                "tuple_key": {"user": user, "relation": relation, "object": target},
                "contextual_tuples": tuples,
                "correlation_id": relation,
            }
            for relation in relations
        ]
        return frozenset(self._checked(checks))

    def _checked(self, checks: list[dict[str, Any]]) -> set[str]:
        body = {"checks": checks, "authorization_model_id": self._store.model_id, "consistency": _EXACT}
        allowed: set[str] = set()
        with _asking():
            result = self._api.batch_check(body).result
            for check in checks:
                one = result[check["correlation_id"]]
                # an item with an error, or without an answer, must not count as denied
                if one.error is not None or not isinstance(one.allowed, bool):
                    raise ValueError(f"a check failed: {one.error}")
                if one.allowed:
                    allowed.add(check["correlation_id"])
        return allowed

    def objects(self, user: str, relation: str, kind: str, *, context: Sequence[RelationTuple]) -> Iterator[str]:
        """The names of all objects of a type that the user has the relation to, as the server finds them.

        The server ends this call without an error when its own deadline is over. So an answer that took long may be
        incomplete and raises Unavailable at its end: the caller must read all of it before using any of it.
        """
        body = {
            "user": user,
            "relation": relation,
            "type": kind,
            "contextual_tuples": {"tuple_keys": [each.plain() for each in context]},
            "authorization_model_id": self._store.model_id,
            "consistency": _EXACT,
        }
        began = time.monotonic()
        yield from self._lines(f"/stores/{self._store.id}/streamed-list-objects", body)
        if time.monotonic() - began > self._timeout_s * _TRUSTED_PART:
            raise unavailable(f"a list of objects took {time.monotonic() - began:.1f} s and may not be complete")

    def _lines(self, path: str, body: dict[str, Any]) -> Iterator[str]:
        with _asking():
            # not the SDK's own stream: it ignores errors in the middle and lines that are not results
            answer = self._client.rest_client.request(
                "POST",
                f"{self._url}{path}",
                headers={"Content-Type": "application/json", **self._headers},
                body=body,
                _preload_content=False,
            )
            try:
                rest = b""
                for chunk in answer.stream(_CHUNK):
                    *lines, rest = (rest + chunk).split(b"\n")
                    yield from map(_object_in, lines)
                _ensure_nothing_left(rest)
            except BaseException:
                answer.close()  # the unread rest must not be taken for the next answer on this connection
                raise
            answer.release_conn()

    def write(self, writes: Iterable[RelationTuple], deletes: Iterable[RelationTuple]) -> None:
        """Write and delete tuples, all or none; at most MOST_WRITTEN, each once. Idempotent."""
        body: dict[str, Any] = {"authorization_model_id": self._store.model_id}
        if added := [each.plain() for each in writes]:
            body["writes"] = {"tuple_keys": added, "on_duplicate": "ignore"}
        if removed := [each.plain() for each in deletes]:
            body["deletes"] = {"tuple_keys": removed, "on_missing": "ignore"}
        if added or removed:
            with _asking():
                self._api.write(body)

    def tuples(self) -> Iterator[RelationTuple]:
        """All tuples in the store, oldest first; read in pages."""
        token = ""
        while True:
            with _asking():
                page = self._api.read({"page_size": _PAGE, "continuation_token": token, "consistency": _EXACT})
                found = [RelationTuple(each.key.user, each.key.relation, each.key.object) for each in page.tuples]
                token = _text(page.continuation_token)
            yield from found
            if not token:
                return

    def has_store(self) -> bool:
        """Whether the store still exists on the server."""
        with _asking():
            try:
                self._api.get_store()
            except NotFoundException:
                return False
        return True

    def find_store(self, name: str) -> str | None:
        """The id of the store with this name, or None. Raises Unavailable if there are several."""
        with _asking():
            found = [_text(store.id) for store in self._api.list_stores(name=name).stores if store.name == name]
        if len(found) > 1:
            raise unavailable(f"there are {len(found)} stores named {name!r}: rename or delete all but one")
        return found[0] if found else None

    def create_store(self, name: str) -> str:
        with _asking():
            return _text(self._api.create_store({"name": name}).id)

    def write_model(self, model: dict[str, Any]) -> str:
        """Write a new version of the model; returns its id."""
        with _asking():
            return _text(self._api.write_authorization_model(model).authorization_model_id)

    def has_model(self, model_id: str) -> bool:
        with _asking():
            try:
                self._api.read_authorization_model(model_id)
            except NotFoundException:
                return False
        return True

    def has_models(self) -> bool:
        """Whether the store has any model."""
        with _asking():
            return len(self._api.read_authorization_models(page_size=1).authorization_models) > 0


@contextmanager
def _asking() -> Iterator[None]:
    """Translates errors; it surrounds each call, including the reading of the answer."""
    try:
        yield
    except _FAILURES as error:
        raise _translated(error) from error


def _configuration(url: str, store: Store, token: str | None, timeout_s: float) -> ClientConfiguration:
    known = CredentialConfiguration(api_token=token)
    # no retries: a caller who gets 503 quickly can try again, one who waits for several attempts holds a thread
    once: Any = RetryParams(max_retry=0)  # type: ignore[no-untyped-call]
    configuration = ClientConfiguration(
        api_url=url,
        store_id=store.id or None,
        credentials=Credentials(method="none")
        if token is None
        else Credentials(method="api_token", configuration=known),
        # the SDK takes numbers up to 100 for seconds; `timeout_s` is at least 1
        timeout_millisec=int(timeout_s * 1000),
        retry_params=once,
    )
    for_urllib3: Any = urllib3.Retry(total=0)
    configuration.retries = for_urllib3
    return configuration


def unavailable(reason: str) -> Unavailable:
    """`reason` is shown to API callers and at terminals, so it must contain neither a secret nor an address."""
    return Unavailable(f"OpenFGA cannot be asked about rights: {reason}")


def _translated(error: Exception) -> Unavailable:
    if isinstance(error, ApiException):
        reason = f"it answered {error.status}{f' ({error.code})' if error.code else ''}"
        logger.warning("OpenFGA: %s", error)
    else:
        away = isinstance(error, urllib3.exceptions.HTTPError | OSError)
        reason = "it is not reachable" if away else "its answer could not be understood"
        logger.warning("OpenFGA: %s: %s", type(error).__name__, error)
    return unavailable(reason)


def _text(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError(f"a string was expected, not {found!r}")
    return found


def _ensure_nothing_left(rest: bytes) -> None:
    if rest:
        raise ValueError("the list of objects ended in the middle of a line")


def _object_in(line: bytes) -> str:
    found = msgspec.json.decode(line)
    if "result" not in found:
        raise ValueError(f"the list of objects ended with an error: {found.get('error')}")
    return str(found["result"]["object"])
