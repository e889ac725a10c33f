"""The versions of the Iceberg table format that a warehouse allows, and the default for new tables. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from lakewarden.errors import BadRequest, ValidationFailed

FORMAT_VERSIONS = (1, 2, 3)
PREFERRED = 2
"""The version of a new table when neither the request nor the warehouse sets one: most engines support it."""


def all_format_versions() -> list[int]:
    return list(FORMAT_VERSIONS)


@dataclass(frozen=True, slots=True)
class FormatVersionPolicy:
    """`allowed` is ascending and not empty; `default` is one of them, or None: PREFERRED if it is allowed."""

    allowed: tuple[int, ...] = FORMAT_VERSIONS
    default: int | None = None

    @classmethod
    def parse(cls, allowed: Sequence[int] | None, default: int | None) -> Self:
        """Raises BadRequest for versions that are not known, none at all, or a default that is not allowed."""
        found = tuple(sorted(set(FORMAT_VERSIONS if allowed is None else allowed)))
        if not found:
            raise BadRequest("allowed-format-versions is empty: at least one of 1, 2, 3 is needed")
        if unknown := [version for version in found if version not in FORMAT_VERSIONS]:
            raise BadRequest(f"allowed-format-versions: {unknown[0]} is not a known version; 1, 2 and 3 are")
        if default is not None and default not in found:
            raise BadRequest(f"default-format-version: {default} is not one of the allowed versions ({_listed(found)})")
        return cls(found, default)

    @property
    def for_new_tables(self) -> int:
        """The version of a new table whose create request does not set `format-version`."""
        if self.default is not None:
            return self.default
        return PREFERRED if PREFERRED in self.allowed else self.allowed[-1]

    def ensure_allowed(self, version: int) -> None:
        """Raises ValidationFailed when the policy does not allow the version."""
        if version not in self.allowed:
            raise ValidationFailed(
                f"Format version {version} is not allowed in this warehouse; allowed: {_listed(self.allowed)}"
            )


def _listed(versions: Sequence[int]) -> str:
    return ", ".join(str(version) for version in versions)
