"""The figures of flushes."""

import json
import time

from pipeline.jobs.flush import Flushed, condensed
from pipeline.jobs.parts import Snapshot
from pipeline.jobs.status import Status, answer, percentile, sentence

NOW = time.time()
FLUSHED = Flushed(
    after=3,
    upto=5,
    events=200,
    tables=1,
    snapshots=(Snapshot(("ns", "t"), 7, 2, 1_500_000, 200),),
    rejected=1,
    began=NOW - 2,
    ended=NOW,
    ages=((1.0, 100.0), (4.0, 100.0)),
)


def test_the_answer_to_a_flush_has_the_figures_of_all_that_it_waited_for() -> None:
    assert answer([FLUSHED, FLUSHED], ["file"]) == {
        "batchesFlushed": 4,
        "eventsFlushed": 400,
        "bytesWritten": 3_000_000,
        "paths": ["file"],
        "durationMs": 4000,
        "usedFallback": False,
    }


def test_ages_of_many_tables_become_few_and_no_younger() -> None:
    ages = [(float(number), 2.0) for number in range(1001)]
    few = condensed(list(reversed(ages)))
    assert len(few) <= 500
    assert sum(events for _, events in few) == 2002
    assert few[-1][0] == 1000
    assert 0 <= percentile(list(few), 0.5) - percentile(ages, 0.5) <= 3000
    assert condensed([(2.0, 1.0), (1.0, 3.0)]) == ((1.0, 3.0), (2.0, 1.0))
    assert condensed([]) == ()


def test_the_row_tells_state_last_flush_freshness_and_totals() -> None:
    status = Status()
    assert status.row()["last_flush"] is None
    status.add(FLUSHED)
    row = status.row()
    freshness = json.loads(str(row["freshness"]))
    assert (freshness["p50"], freshness["p95"], freshness["dataFiles"]) == (1000, 4000, 2)
    assert json.loads(str(row["last_flush"]))["eventsFlushed"] == 200


def test_percentiles_are_weighted() -> None:
    assert percentile([(1.0, 98.0), (2.0, 1.0), (3.0, 1.0)], 0.95) == 1000
    assert percentile([(1.0, 1.0), (2.0, 99.0)], 0.5) == 2000


def test_a_line_of_the_log_is_for_people() -> None:
    assert sentence(FLUSHED) == (
        "200 events of 1 table in 1 snapshots (2 files, 1.5 MB) after 2.0 s, 100 events/s, 1 values did not fit; "
        "95% were seen within 4.0 s; position 5"
    )


def test_histograms_count_flushes_and_events() -> None:
    status = Status()
    status.add(FLUSHED)
    found = status.freshness()["histograms"]
    assert sum(found["flush"]["counts"]) == 1
    assert (sum(found["freshness"]["counts"]), found["freshness"]["sum"]) == (200, 500.0)


def test_what_was_written_is_taken_once() -> None:
    status = Status()
    status.add(FLUSHED)
    assert status.take_written() == {("ns", "t")}
    assert status.take_written() == set()
