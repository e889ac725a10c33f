"""The reference page on the clients that exist: the management API beside the one that it is a drop-in for.

`python -m scripts.compatibility FILE` stores the shapes of that API's OpenAPI document anew. `write_reference` compares
them with our own document.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from scripts.compatibility_reasons import ABSENT, DELIBERATE, DIFFERENT, HEAD
from scripts.wire_shapes import Members, Shapes, shapes

STORED = Path(__file__).parent / "compatibility_shapes.json"

_MOST_SHOWN = 4
_ALIKE = ("same", "superset")


@dataclass(frozen=True)
class Compared:
    """One operation of the reference: `state` is same, superset, different on purpose, different or absent."""

    operation: str
    state: str
    notes: tuple[str, ...] = ()


def page(ours: Mapping[str, Any]) -> str:
    """The whole page, from our own document."""
    found = compared(json.loads(STORED.read_text(encoding="utf-8")), shapes(ours))
    counts = Counter(each.state for each in found)
    states = (*_ALIKE, "different on purpose", "different", "absent")
    summary = [f"| {state} | {counts[state]} |" for state in states if counts[state] or state != "different"]
    deliberate = [f"| {each.ours} | {each.why} | {each.switch} |" for each in DELIBERATE]
    return HEAD.format(
        total=len(found),
        counts="\n".join(summary),
        deliberate="\n".join(deliberate),
        differing="\n".join(_row(each) for each in found if each.state not in _ALIKE),
        others="\n".join(_row(each, each.state) for each in found if each.state in _ALIKE),
    )


def compared(reference: Shapes, ours: Shapes) -> list[Compared]:
    """Every operation of the reference beside ours."""
    literal_first = sorted(ours, key=lambda name: name.count("{"))
    routes = {re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(name)): name for name in literal_first}
    return [_compared(name, reference[name], _ours(name, routes, ours)) for name in sorted(reference, key=_by_path)]


def _ours(name: str, routes: Mapping[str, str], ours: Shapes) -> dict[str, Any] | None:
    plain = re.sub(r"\{[^}]*\}", "x", name)
    return next((ours[own] for pattern, own in routes.items() if re.fullmatch(pattern, plain)), None)


def _compared(name: str, theirs: Mapping[str, Any], ours: Mapping[str, Any] | None) -> Compared:
    if ours is None:
        return Compared(name, "absent", (_reason(ABSENT, name, "") or "",))
    found = list(differences(theirs, ours))
    if not found:
        return _with_more(name, theirs, ours)
    reasons = {each: _reason(DIFFERENT, name, each) for each in found}
    if all(reason == "" for reason in reasons.values()):  # what no client can tell
        return _with_more(name, theirs, ours)
    grouped: dict[str | None, list[str]] = {}
    for difference, reason in reasons.items():
        if reason != "":
            grouped.setdefault(reason, []).append(difference)
    notes = tuple(f"{_listed(what)}: {why}" if why else _listed(what) for why, what in grouped.items())
    return Compared(name, "different" if None in grouped else "different on purpose", notes)


def differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    """What a client of the reference could miss, such as `answer: grants.resource`."""
    for parameter in theirs["parameters"].keys() - ours["parameters"].keys():
        yield f"parameter: {parameter}"
    for parameter, kind in ours["parameters"].items():
        if not kind.endswith("?") and theirs["parameters"].get(parameter, "?").endswith("?"):
            yield f"parameter needed: {parameter}"
    yield from _members_apart("request", theirs["request"], ours["request"], is_sent=True)
    for status, answer in theirs["answers"].items():
        if status not in ours["answers"]:
            yield f"status: {status}"
        else:
            yield from _members_apart("answer", answer, ours["answers"][status], is_sent=False)


def _members_apart(where: str, theirs: Members, ours: Members, *, is_sent: bool) -> Iterator[str]:
    for name, kind in theirs.items():
        if name in ours:
            if not _fits(kind, ours[name]):
                yield f"{where}: {name} is {ours[name].rstrip('?')}, not {kind.rstrip('?')}"
            elif not is_sent and ours[name].endswith("?") and not kind.endswith("?"):
                yield f"{where}: {name} may be missing"
        elif name.rpartition(".")[0] in {"", *ours}:  # else it is in a member that is missing itself
            yield f"{where}: {name}"
    if is_sent:
        for name, kind in ours.items():
            above = name.rpartition(".")[0]
            if not kind.endswith("?") and theirs.get(name, "?").endswith("?") and above in {"", *theirs}:
                yield f"{where} needed: {name}"


def _fits(theirs: str, ours: str) -> bool:
    plain, own = theirs.rstrip("?"), ours.rstrip("?")
    return plain == own or "any" in {plain, own} or {plain, own} == {"integer", "number"}


def _with_more(name: str, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Compared:
    """Same or superset, with what there is besides."""
    parameters = ours["parameters"].keys() - theirs["parameters"].keys() - {"header Idempotency-Key"}
    more = [f"parameter: {each}" for each in parameters]
    more += [f"request: {each}" for each in ours["request"].keys() - theirs["request"].keys()]
    for status, answer in ours["answers"].items():
        more += [f"answer: {each}" for each in answer.keys() - theirs["answers"].get(status, {}).keys()]
    return Compared(name, "superset", (f"further: {_listed(more)}",)) if more else Compared(name, "same")


def _reason(reasons: Mapping[tuple[str, str], str], operation: str, what: str) -> str | None:
    """The first reason whose patterns fit; None if there is none."""
    fitting = (
        why
        for (name, difference), why in reasons.items()
        if fnmatchcase(operation, name) and fnmatchcase(what, difference)
    )
    return next(fitting, None)


def _listed(differences: list[str]) -> str:
    shown = ", ".join(f"`{each}`" for each in sorted(differences)[:_MOST_SHOWN])
    return shown if len(differences) <= _MOST_SHOWN else f"{shown} and {len(differences) - _MOST_SHOWN} more"


def _by_path(operation: str) -> tuple[str, str]:
    method, _, path = operation.partition(" ")
    return path, method


def _row(each: Compared, *state: str) -> str:
    operation = each.operation.replace("/management/v1", "")
    return f"| `{operation}` | {' | '.join([*state, '; '.join(each.notes)])} |"


def stored(path: Path) -> str:
    """What the reference document in this file says, as it is stored: one operation in a line."""
    found = shapes(yaml.safe_load(path.read_text(encoding="utf-8")))
    lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found, key=_by_path)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    STORED.write_text(stored(Path(sys.argv[1])), encoding="utf-8")
