"""The interface of verifiers; oidc.py, opaque.py and kubernetes.py implement it."""

from dataclasses import dataclass
from typing import Final, Protocol

from lakewarden.authn.interface import VerifiedToken

UNDATED_S: Final = 300.0  # how long a token without an expiry is accepted before it must be verified again


@dataclass(frozen=True, slots=True)
class Verified:
    """A verified token and until when it is valid: `valid_until`, in Unix seconds with the clock skew added.

    `is_dated`: the token has an expiry of its own; otherwise it must only be verified again then. `stamp` is the
    verifier's stamp at the time of the verification.
    """

    token: VerifiedToken
    valid_until: float
    is_dated: bool = True
    stamp: int = 0


class Verifier(Protocol):
    """Verifies the tokens of one provider or cluster.

    `recheck_after_s`: seconds after which a verified token must be verified again in the background; None: never.
    `max_missed_rechecks`: after so many such intervals without an answer, the token is no longer accepted.
    """

    @property
    def recheck_after_s(self) -> float | None: ...

    @property
    def max_missed_rechecks(self) -> int: ...

    def stamp(self) -> int:
        """A number that changes when all tokens must be verified again, such as after a change of keys.

        Never blocks.
        """
        ...

    def verify(self, token: str, *, again: bool = False) -> Verified:
        """Verify a token that the chain routed here; `again`: it was accepted before.

        Raises:
            NotAuthorized: it is not valid.
            Unavailable: the party that must be asked does not answer.

        """
        ...
