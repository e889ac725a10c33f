"""The clients at the development issuer that the process tree uses."""

from pathlib import Path
from typing import Protocol

from standalone.errors import EmbeddedError
from standalone.provisioning import Credentials


class Person(Protocol):
    """Somebody who signs in with a password; `subject` is the `sub` of their tokens."""

    @property
    def username(self) -> str: ...
    @property
    def password(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def name(self) -> str: ...


class Identities(Protocol):
    """`admin` and `user`, a person, get all privileges, `engine` and `pipeline` those of engines in the warehouse."""

    @property
    def admin(self) -> Credentials: ...
    @property
    def engine(self) -> Credentials: ...
    @property
    def user(self) -> Person: ...
    @property
    def pipeline(self) -> Credentials: ...


def development_identities(state_dir: Path) -> Identities:
    """The development issuer's clients, created at the first call for this directory."""
    from standalone.issuer import seed  # noqa: PLC0415 (usage errors should not wait for this import)
    from standalone.issuer.refusal import StartRefused  # noqa: PLC0415

    try:
        return seed.prepare(state_dir)
    except StartRefused as error:
        raise EmbeddedError(str(error)) from error
