"""What the benchmarks say of figures that are known: medians, spread, and ratios of each server to the others."""

from benchmarks import report
from benchmarks.budgets import Table
from benchmarks.load.closed_loop import Slice
from benchmarks.machine.parts import POSTGRES, SERVER
from benchmarks.results import SUBJECT, YARDSTICK, Result

MS = 1_000_000


def result(side: str, *rates: int, server_us: int, scenario: str = "commit-apart", clients: int = 8) -> Result:
    """One round of a second for each of `rates`, each answer after 2 ms."""
    rounds = [
        Slice(seconds=1.0, latencies_ns=[2 * MS] * rate, cpu_ns={SERVER: rate * server_us * 1000, POSTGRES: 0})
        for rate in rates
    ]
    return Result(scenario, clients, side, rounds)


def test_the_median_and_the_spread_of_the_rounds_are_told() -> None:
    text = report.as_text([result(SUBJECT, 100, 400, 200, server_us=50)], {})
    row = next(line for line in text.splitlines() if line.startswith("commit-apart"))
    assert row.split()[1:4] == ["8", "200", "(100-400)"]


def test_a_server_beside_ours_is_compared_by_speed_and_by_the_yardsticks_cpu() -> None:
    results = [
        result(SUBJECT, 300, server_us=40),
        result("before", 100, server_us=80),
        result(YARDSTICK, 600, server_us=20),
    ]
    table = Table(results)
    assert table.speed("commit-apart", 8, "before") == 3.0
    assert table.speed("commit-apart", 8, YARDSTICK) == 0.5
    assert table.ratio("commit-apart", 8, SERVER) == 2.0
    assert table.ratio("commit-apart", 8, SERVER, side="before") == 4.0
    lines = {line.split()[0]: line.split() for line in report.as_text(results, {}).splitlines() if line.strip()}
    assert lines["before"][4] == "3.00"
    assert lines["commit-apart"][4] == "-"


def test_what_was_not_measured_has_no_ratio() -> None:
    table = Table([result(SUBJECT, 300, server_us=40)])
    assert table.speed("commit-apart", 8, "before") is None
    assert table.ratio("commit-apart", 8, SERVER) is None
    assert table.ratio("commit-apart", 32, SERVER) is None


def test_a_ledger_that_does_not_agree_is_said_and_no_other_line_claims_the_opposite() -> None:
    wrong = result(SUBJECT, 10, server_us=1)
    wrong.problems.append("1 acknowledged commits are not in the table's history")
    text = report.as_text([wrong], {})
    assert "WRONG commit-apart, 8 clients, subject: 1 acknowledged" in text
    assert "nothing lost" not in text
