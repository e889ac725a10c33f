"""The development issuer's clients that the process tree uses."""

from pathlib import Path
from typing import Protocol

from standalone.errors import EmbeddedError
from standalone.provisioning import Credentials


class Identities(Protocol):
    """`admin` gets every right, `engine` what an engine needs in the warehouse."""

    @property
    def admin(self) -> Credentials: ...
    @property
    def engine(self) -> Credentials: ...


def development_identities(state_dir: Path) -> Identities:
    """The development issuer's identities, made at the first call for this directory."""
    from standalone.issuer import seed  # noqa: PLC0415 (a mistake is told without waiting for it)
    from standalone.issuer.refusal import StartRefused  # noqa: PLC0415

    try:
        return seed.prepare(state_dir)
    except StartRefused as error:
        raise EmbeddedError(str(error)) from error
