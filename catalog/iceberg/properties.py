"""Properties as values: they are texts of whatever length, written by anybody."""

import re

_WHOLE = re.compile(r"-?[0-9]{1,10}")


def whole_number(text: str) -> int | None:
    """The number of at most ten digits that a property says, None when it says anything else."""
    return int(text) if _WHOLE.fullmatch(text) else None


def is_true(text: str | None) -> bool:
    """Tell whether a switch is on; only `true` in any case is."""
    return text is not None and text.lower() == "true"
