"""Computes drawings that templates render as SVG: the graph of snapshots, and charts. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from console.documents import MAIN, SnapshotView

LANE: Final = 22
ROW: Final = 60
_MARGIN: Final = 14
_LANES: Final = 12
"""Most lanes drawn side by side; further branches share the last one."""


@dataclass(frozen=True, slots=True)
class Node:
    snapshot: SnapshotView
    x: int
    y: int
    lane: int


@dataclass(frozen=True, slots=True)
class Line:
    """A path from a snapshot to its parent (SVG path data)."""

    path: str
    lane: int


@dataclass(frozen=True, slots=True)
class Graph:
    width: int
    height: int
    nodes: list[Node]
    lines: list[Line]


def snapshot_graph(snapshots: Sequence[SnapshotView], heads: Mapping[str, int]) -> Graph:
    """The snapshots from the newest (top) to the oldest, one a row; each branch and each lone line has a lane.

    `heads`: the snapshots that branches and tags point to. A parent that is not among the snapshots is not drawn.
    """
    places = {each.id: at for at, each in enumerate(snapshots)}
    lanes = _lanes(snapshots, heads, places)
    nodes = [Node(each, _x(lanes[each.id]), at * ROW + ROW // 2, lanes[each.id]) for at, each in enumerate(snapshots)]
    by_id = {node.snapshot.id: node for node in nodes}
    lines = [
        _line(node, by_id[node.snapshot.parent_id])
        for node in nodes
        if node.snapshot.parent_id in by_id and node.snapshot.parent_id != node.snapshot.id
    ]
    width = _x(max(lanes.values(), default=0)) + _MARGIN
    return Graph(width, max(1, len(nodes)) * ROW, nodes, lines)


def _lanes(snapshots: Sequence[SnapshotView], heads: Mapping[str, int], places: Mapping[int, int]) -> dict[int, int]:
    parents = {each.id: each.parent_id for each in snapshots}
    lanes: dict[int, int] = {}
    starts = [heads[name] for name in sorted(heads, key=lambda name: (name != MAIN, name))]
    number = 0
    for start in [*starts, *(each.id for each in snapshots)]:
        at: int | None = start
        is_new = False
        while at is not None and at in places and at not in lanes:
            lanes[at] = min(number, _LANES - 1)
            at, is_new = parents[at], True
        number += is_new
    return lanes


def _x(lane: int) -> int:
    return _MARGIN + lane * LANE


def _line(child: Node, parent: Node) -> Line:
    lane = max(child.lane, parent.lane)
    if child.x == parent.x:
        return Line(f"M{child.x} {child.y}V{parent.y}", lane)
    bend = parent.y - ROW // 2
    return Line(f"M{child.x} {child.y}V{bend}C{child.x} {parent.y} {parent.x} {bend} {parent.x} {parent.y}", lane)


@dataclass(frozen=True, slots=True)
class Chart:
    """A line with the area below it, in a box of `width` by `height`; `marks` are its points with their texts."""

    title: str
    width: int
    height: int
    line: str
    area: str
    marks: list[tuple[float, float, str]]
    top: str
    first: str
    last: str


_WIDTH: Final = 560
_HEIGHT: Final = 140
_PAD: Final = 8


def chart(title: str, points: Sequence[tuple[float, float, str]], *, top: str, first: str, last: str) -> Chart | None:
    """A chart of (x, y, text) points in the order of x; None for fewer than two. The y-axis begins at 0."""
    if len(points) < 2:  # noqa: PLR2004 a line has two ends
        return None
    low, high, most = points[0][0], points[-1][0], max(y for _, y, _ in points) or 1
    span = (high - low) or 1
    places = [
        (
            round(_PAD + (x - low) / span * (_WIDTH - 2 * _PAD), 1),
            round(_HEIGHT - _PAD - y / most * (_HEIGHT - 2 * _PAD), 1),
            text,
        )
        for x, y, text in points
    ]
    line = "M" + "L".join(f"{x} {y}" for x, y, _ in places)
    ground = _HEIGHT - _PAD
    area = f"{line}L{places[-1][0]} {ground}L{places[0][0]} {ground}Z"
    return Chart(title, _WIDTH, _HEIGHT, line, area, places, top, first, last)


@dataclass(frozen=True, slots=True)
class Box:
    x: int
    y: int
    text: str
    address: str | None


@dataclass(frozen=True, slots=True)
class Nesting:
    """Boxes of `BOX_WIDTH` by `BOX_HEIGHT`, and the lines between them."""

    width: int
    height: int
    boxes: list[Box]
    lines: list[str]


BOX_WIDTH: Final = 190
BOX_HEIGHT: Final = 34
_GAP: Final = 14
_BETWEEN: Final = 90
_CUT: Final = 22  # characters that fit into a box


def neighbours(above: Sequence[tuple[str, str]], name: str, below: Sequence[tuple[str, str]]) -> Nesting:
    """Three columns: the roles that contain it, itself, and the roles in it. Each has a name and an address."""
    columns: list[Sequence[tuple[str, str | None]]] = [above, [(name, None)], below]
    height = max(len(column) for column in columns) * (BOX_HEIGHT + _GAP) + _GAP
    boxes = [
        [
            Box(number * (BOX_WIDTH + _BETWEEN) + 2, _top(at, len(column), height), _shortened(text), address)
            for at, (text, address) in enumerate(column)
        ]
        for number, column in enumerate(columns)
    ]
    (middle,) = boxes[1]
    lines = [_joined(each, middle) for each in boxes[0]] + [_joined(middle, each) for each in boxes[2]]
    return Nesting(3 * BOX_WIDTH + 2 * _BETWEEN + 4, height, [box for column in boxes for box in column], lines)


def _top(at: int, count: int, height: int) -> int:
    taken = count * (BOX_HEIGHT + _GAP) - _GAP
    return (height - taken) // 2 + at * (BOX_HEIGHT + _GAP)


def _joined(left: Box, right: Box) -> str:
    x, y = left.x + BOX_WIDTH, left.y + BOX_HEIGHT // 2
    end, half = right.y + BOX_HEIGHT // 2, _BETWEEN // 2
    return f"M{x} {y}C{x + half} {y} {right.x - half} {end} {right.x} {end}"


def _shortened(text: str) -> str:
    return text if len(text) <= _CUT else text[: _CUT - 1] + "…"
