import io
import json
import re
from pathlib import Path

import pytest

from demo.report import Report, show
from demo.result import DemoResult, Totals


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_a_step_tells_its_seconds(stream: io.StringIO) -> None:
    with Report(stream).step("Load"):
        assert stream.getvalue() == "  Load ... "
    assert re.fullmatch(r"  Load \.\.\. \d+\.\d s\n", stream.getvalue())


@pytest.mark.parametrize(("error", "word"), [(KeyError, "failed"), (KeyboardInterrupt, "interrupted")])
def test_a_step_that_ends_badly_says_so(stream: io.StringIO, error: type[BaseException], word: str) -> None:
    with pytest.raises(error), Report(stream).step("Load"):
        raise error
    assert stream.getvalue() == f"  Load ... {word}\n"


def test_progress_within_a_step_stands_below_its_name(stream: io.StringIO) -> None:
    report = Report(stream)
    with report.step("Load"):
        report.say("12 of 46 MiB")
    assert re.fullmatch(r"  Load \.\.\. \n      12 of 46 MiB\n      \.\.\. \d+\.\d s\n", stream.getvalue())


def test_a_table_aligns_numbers_to_the_right(stream: io.StringIO) -> None:
    Report(stream).table(("name", "rows"), [("a", 1234567), ("longer", None)])
    assert stream.getvalue().splitlines() == [
        "    name         rows",
        "    ──────  ─────────",
        "    a       1,234,567",
        "    longer",
    ]


def test_a_table_without_rows_shows_its_titles(stream: io.StringIO) -> None:
    Report(stream).table(("name", "rows"), [])
    assert stream.getvalue().splitlines()[0] == "    name  rows"


def test_bars_of_both_signs_share_one_line(stream: io.StringIO) -> None:
    Report(stream).bars([("late", 40.0), ("early", -20.0)], unit="min")
    late, early = stream.getvalue().splitlines()
    assert late.index("│") == early.index("│")
    assert (late.count("█"), early.count("█")) == (40, 20)
    assert early.index("█") < early.index("│") < late.index("█")


def test_bars_of_nothing_are_no_trouble(stream: io.StringIO) -> None:
    Report(stream).bars([("still", 0.0)], unit="min")
    assert stream.getvalue() == "    still │ +0.0 min\n"


@pytest.mark.parametrize(("value", "shown"), [(None, ""), (True, "yes"), (-1234, "-1,234"), (0.25, "0.2"), ("x", "x")])
def test_a_value_is_shown_for_a_person(value: object, shown: str) -> None:
    assert show(value) == shown


def test_a_result_is_written_as_json(tmp_path: Path) -> None:
    totals = Totals(2, {"alt": 3})
    result = DemoResult("nyc", {"airports": totals}, {"now": totals}, [1], 16, totals, 1.5, 2.5)
    result.write(tmp_path / "result.json")
    written = json.loads((tmp_path / "result.json").read_text())
    assert written["tables"] == {"airports": {"rows": 2, "sums": {"alt": 3}}}
    assert list(tmp_path.iterdir()) == [tmp_path / "result.json"]
