"""Finds spans in what a collector has received."""

from collections.abc import Sequence

from tests.servers.otlp import Received


def named(spans: Sequence[Received], name: str, *, starts: bool = False) -> Received:
    for each in spans:
        if each.name == name or (starts and each.name.startswith(name)):
            return each
    raise AssertionError((name, [each.name for each in spans]))


def above(spans: Sequence[Received], span: Received) -> list[str]:
    """The names of the spans around it, from the inside."""
    known = {each.id: each for each in spans}
    found = known.get(span.parent)
    return [] if found is None else [found.name, *above(spans, found)]
