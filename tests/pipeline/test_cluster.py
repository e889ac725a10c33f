"""The same job on a Spark cluster of two workers, of which one is killed in the middle."""

import json
import signal

import pytest

from standalone.ports import HOST
from tests.pipeline.flushing import DEADLINE_S, Stage
from tests.pipeline.processes import await_flushes, pipeline, random_changes, replayed
from tests.servers import spark_cluster

SPARK = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
}


@pytest.mark.timeout(2700)
def test_a_worker_of_the_cluster_that_is_killed_costs_nothing_but_time(stage: Stage) -> None:
    stage.follower.stop()
    stage.policy("both")
    events = random_changes(600, seed=11)
    for start in range(0, len(events), 50):
        stage.log.append(events[start : start + 50])
    with (
        spark_cluster.start(workers=2) as cluster,
        pipeline(stage, "--master", cluster.url, spark=json.dumps(SPARK)) as process,
    ):
        await_flushes(stage, process, count=2)
        assert cluster.alive() == 2
        cluster.kill_worker(0)
        await_flushes(stage, process, count=2)
        cluster.await_workers(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0, process.communicate()[1]
    stage.follower.start()
    assert [row["_cdc_sequence"] for row in stage.rows("t")] == [event["sequence"] for event in events]
    assert stage.mirror("t_current") == replayed(events)
