from datetime import UTC, datetime

from console import drawings
from console.documents import SnapshotView


def snapshot(identifier: int, parent: int | None) -> SnapshotView:
    at = datetime.fromtimestamp(identifier, UTC)
    return SnapshotView(identifier, parent, at, "append", {}, (), None)


def test_a_branch_has_a_lane_of_its_own_until_it_meets_the_main_line() -> None:
    line = [snapshot(5, 3), snapshot(4, 2), snapshot(3, 2), snapshot(2, 1), snapshot(1, None)]
    graph = drawings.snapshot_graph(line, {"main": 5, "audit": 4})
    assert {node.snapshot.id: node.lane for node in graph.nodes} == {5: 0, 3: 0, 2: 0, 1: 0, 4: 1}
    assert len(graph.lines) == 4
    assert graph.height == 5 * drawings.ROW
    assert all(0 < node.x < graph.width for node in graph.nodes)


def test_a_parent_on_another_page_is_not_drawn() -> None:
    graph = drawings.snapshot_graph([snapshot(2, 1)], {"main": 2})
    assert graph.lines == []


def test_many_branches_share_the_last_lane() -> None:
    lone = [snapshot(number, None) for number in range(40, 0, -1)]
    graph = drawings.snapshot_graph(lone, {})
    assert max(node.lane for node in graph.nodes) == 11


def test_a_snapshot_that_names_itself_as_its_parent_ends_the_line() -> None:
    graph = drawings.snapshot_graph([snapshot(1, 1)], {"main": 1})
    assert (len(graph.nodes), graph.lines) == (1, [])


def test_a_chart_needs_two_points_and_begins_at_zero() -> None:
    assert drawings.chart("Records", [(0, 5, "")], top="", first="", last="") is None
    drawn = drawings.chart("Records", [(0, 0, "a"), (10, 20, "b")], top="20", first="", last="")
    assert drawn is not None
    (left, ground, _), (right, peak, _) = drawn.marks
    assert left < right
    assert peak < ground == drawn.height - 8


def test_a_chart_of_zeros_lies_on_the_ground() -> None:
    drawn = drawings.chart("Records", [(0, 0, ""), (0, 0, "")], top="0", first="", last="")
    assert drawn is not None
    assert {y for _, y, _ in drawn.marks} == {drawn.height - 8}
