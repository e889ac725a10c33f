"""`lakewarden pipeline` as a process of its own, killed in the middle of its work."""

import signal
import time

import pytest

from tests.pipeline.flushing import DEADLINE_S, Stage
from tests.pipeline.processes import await_flushes, pipeline, random_changes, replayed


@pytest.mark.timeout(2700)
def test_a_pipeline_that_is_killed_again_and_again_loses_and_doubles_nothing(stage: Stage) -> None:
    stage.follower.stop()
    stage.policy("both")
    events = random_changes(1500, seed=7)
    for start in range(0, len(events), 50):
        stage.log.append(events[start : start + 50])
    for pause_s in (0.3, 1.1):
        with pipeline(stage) as process:
            await_flushes(stage, process, count=2)
            time.sleep(pause_s)
            process.send_signal(signal.SIGKILL)
    with pipeline(stage) as process:
        await_flushes(stage, process, count=1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0, process.communicate()[1]
    stage.follower.start()
    assert [row["_cdc_sequence"] for row in stage.rows("t")] == [event["sequence"] for event in events]
    assert stage.mirror("t_current") == replayed(events)
