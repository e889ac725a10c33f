"""What went wrong at an object store, whichever library says so, and the sentence that users read about it.

Answers of stores hold keys and signed texts: of their bodies only the error's code, and a region, are ever shown.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from lakewarden.storage.interface import AccessDenied, FileMissing, FileTaken, StorageError, StorageUnavailable

CODE: Final = re.compile(r"<Code>([\w.]{1,80})</Code>")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.]{1,80}")
_REGION = re.compile(r"expecting (?:'|&#39;|&apos;)([\w-]{1,40})")

_DENIED: Final = frozenset(
    {"AccessDenied", "AuthorizationPermissionMismatch", "AuthorizationFailure", "forbidden"}  # of S3, Azure, Google
)
_LATER: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Fault:
    """`status` and `code` as the store answered; None without an answer."""

    status: int | None = None
    code: str | None = None
    region: str | None = None
    """Which the store expects."""
    is_timeout: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", plain_code(self.code))

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later; whether it had an effect is then not known."""
        return self.status is None or self.status in _LATER

    @property
    def is_denied(self) -> bool:
        """Whether the store knows who asks: it also answers 403 when keys or clocks are wrong."""
        return self.status == 403 and (self.code is None or self.code in _DENIED)  # noqa: PLR2004


def plain_code(code: str | None) -> str | None:
    """A code that may be shown; a store that sends any other text in its place could say what it was sent."""
    return code if code is None or _PLAIN.fullmatch(code) else "without a valid code"


def region_in(text: str) -> str | None:
    """The region that a store asks for."""
    found = _REGION.search(text)
    return found[1] if found else None


class StoreFailed(Exception):
    """What a `Listing` raises for a fault of its store."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


Advice = Callable[[Fault], str | None]
"""What a kind of store means by a fault, and what to change; None: nothing special."""


def translated(error: BaseException, *, doing: str, location: str, advice: Advice) -> StorageError:
    """The error to raise instead; `doing` says what was tried, as "reading"."""
    fault = error.fault if isinstance(error, StoreFailed) else Fault()
    if advised := advice(fault):
        message = f"The storage refused {doing} {location}: {advised}"
        if fault.is_passing:
            return StorageUnavailable(message)
        return AccessDenied(message) if fault.is_denied else StorageError(message)
    if fault.status == 404:  # noqa: PLR2004
        return FileMissing(f"No file at {location}")
    if fault.is_passing:
        return StorageUnavailable(f"{doing.capitalize()} {location} failed: {_passing(fault)}")
    if fault.status == 412:  # noqa: PLR2004
        return FileTaken(f"A file already exists at {location}")
    kind = AccessDenied if fault.is_denied else StorageError
    return kind(f"The storage refused {doing} {location}: {_answer(fault)}")


def _passing(fault: Fault) -> str:
    if fault.is_timeout:
        return "the storage did not answer in time"
    if fault.status is None:
        return "the storage cannot be reached, or does not answer as such a store; check the endpoint and the network"
    return f"the storage answered {_answer(fault)}; try again later"


def _answer(fault: Fault) -> str:
    return " ".join(str(each) for each in (fault.status, fault.code) if each)
