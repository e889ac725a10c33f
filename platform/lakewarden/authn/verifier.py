"""What the chain asks of everybody who can verify tokens; implemented in oidc.py, opaque.py and kubernetes.py."""

from dataclasses import dataclass
from typing import Final, Protocol

from lakewarden.authn.interface import VerifiedToken

UNDATED_S: Final = 300.0  # how long a token is believed of which nobody says when it expires


@dataclass(frozen=True, slots=True)
class Verified:
    """A caller and how long to believe it: until `valid_until` (Unix seconds, clock skew included).

    `is_dated`: the token itself ends then; else only our belief does. `stamp` is the verifier's at that time.
    """

    principal: VerifiedToken
    valid_until: float
    is_dated: bool = True
    stamp: int = 0


class Verifier(Protocol):
    """One party whose tokens are accepted: a provider's keys, its introspection endpoint, a cluster.

    `recheck_after_s`: seconds after which a verified token is to be verified again in the background; None: never.
    `max_missed_rechecks`: after so many times that without an answer it is not believed any more.
    """

    @property
    def recheck_after_s(self) -> float | None: ...

    @property
    def max_missed_rechecks(self) -> int: ...

    def stamp(self) -> int:
        """Changes when what was verified before is to be verified again. Never blocks."""
        ...

    def verify(self, token: str, *, again: bool = False) -> Verified:
        """Verify a token that was routed here; `again`: it was accepted before.

        Raises:
            NotAuthorized: it is not valid.
            Unavailable: the party that must be asked cannot be.

        """
        ...
