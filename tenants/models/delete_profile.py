"""A warehouse's delete profile: whether dropped tables and views are removed at once or can be restored. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from lakewarden.errors import BadRequest

LEAST_EXPIRATION_S = 1
MOST_EXPIRATION_S = 10 * 366 * 24 * 3600


@dataclass(frozen=True, slots=True)
class DeleteProfile:
    """`expiration_s`: for how many seconds a dropped table or view can be restored; None: not
    at all (hard deletion).
    """

    expiration_s: int | None = None

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """Parse `{"type": "hard"}` or `{"type": "soft", "expiration-seconds": N}`; raises
        BadRequest for anything else.
        """
        kind, given = value.get("type"), set(value)
        if kind == "hard" and given == {"type"}:
            return cls()
        if kind == "soft" and given == {"type", "expiration-seconds"}:
            return cls(_seconds(value["expiration-seconds"]))
        raise BadRequest(
            f'delete-profile: {str(dict(value))[:200]} is not known; use {{"type": "hard"}}, or '
            f'{{"type": "soft", "expiration-seconds": <{LEAST_EXPIRATION_S} to {MOST_EXPIRATION_S}>}}'
        )

    def dump(self) -> dict[str, Any]:
        """The JSON object as the API returns it and as the database stores it."""
        if self.expiration_s is None:
            return {"type": "hard"}
        return {"type": "soft", "expiration-seconds": self.expiration_s}


def _seconds(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and LEAST_EXPIRATION_S <= value <= MOST_EXPIRATION_S:
        return value
    raise BadRequest(
        f"delete-profile: expiration-seconds is {str(value)[:80]!r}: a whole number from {LEAST_EXPIRATION_S} to "
        f"{MOST_EXPIRATION_S} (ten years) is expected"
    )
