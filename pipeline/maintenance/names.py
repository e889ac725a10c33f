"""Names of tables in Spark's SQL."""

from collections.abc import Sequence


def quoted(*levels: str) -> str:
    """As an identifier."""
    return ".".join(f"`{each.replace('`', '``')}`" for each in levels)


def literal(text: str) -> str:
    """As a string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def argument(table: Sequence[str]) -> str:
    """As the argument `table` of a procedure: an identifier in a string literal."""
    return literal(quoted(*table))
