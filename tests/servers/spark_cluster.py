"""A Spark standalone cluster on this machine, from the jars of the pyspark wheel: a master and workers, one core each."""

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyspark
import urllib3

from pipeline.spark.java import find_java
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess

_HOME: Final = Path(pyspark.__file__).parent
_SCALA: Final = next(_HOME.glob("jars/spark-core_*.jar")).name.removeprefix("spark-core_").partition("-")[0]
_READY_WITHIN_S: Final = 120.0
_WORKER_MEMORY: Final = "1g"


class SparkClusterFailed(AssertionError):
    """It did not start; the message holds what it said."""


@dataclass(frozen=True)
class SparkCluster:
    url: str
    workers: tuple[ManagedProcess, ...]
    _web_ui: int

    def kill_worker(self, number: int) -> None:
        """-9. Its executors end by themselves when they miss it."""
        os.kill(self.workers[number].pid, signal.SIGKILL)

    def alive(self) -> int:
        """Workers that the master counts on."""
        return sum(each["state"] == "ALIVE" for each in self._state()["workers"])

    def await_workers(self, count: int) -> None:
        deadline = time.monotonic() + _READY_WITHIN_S
        while True:
            try:
                if self.alive() == count:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            if time.monotonic() > deadline:
                raise SparkClusterFailed("\n".join(each.log_text() for each in self.workers))
            time.sleep(0.2)

    def _state(self) -> dict[str, Any]:
        with urllib3.PoolManager(retries=False, timeout=5.0) as http:
            return dict(http.request("GET", f"http://{HOST}:{self._web_ui}/json/").json())


@contextmanager
def start(*, workers: int = 2) -> Iterator[SparkCluster]:
    port, web_ui = free_port(), free_port()
    url = f"spark://{HOST}:{port}"
    folder = Path(tempfile.mkdtemp(prefix="lw-spark-"))
    try:
        with ExitStack() as running:
            master = ["Master", "--host", HOST, "--port", str(port), "--webui-port", str(web_ui)]
            running.enter_context(_process("master", master, folder))
            begun = []
            for number in range(workers):
                place = ["--host", HOST, "--webui-port", str(free_port()), "--work-dir", str(folder / f"work-{number}")]
                command = ["Worker", *place, "--cores", "1", "--memory", _WORKER_MEMORY, url]
                begun.append(running.enter_context(_process(f"worker-{number}", command, folder)))
            cluster = SparkCluster(url, tuple(begun), web_ui)
            cluster.await_workers(workers)
            yield cluster
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _process(name: str, arguments: list[str], folder: Path) -> ManagedProcess:
    role, *rest = arguments
    return ManagedProcess(
        f"spark {name}",
        [
            find_java().executable,
            "-Xmx256m",
            "-cp",
            f"{_HOME}/jars/*",
            f"org.apache.spark.deploy.{role.lower()}.{role}",
            *rest,
        ],
        log=folder / f"{name}.log",
        # Spark's scripts would set the version of Scala, which a worker needs to start executors
        environment=os.environ | {"SPARK_HOME": str(_HOME), "SPARK_LOCAL_IP": HOST, "SPARK_SCALA_VERSION": _SCALA},
        directory=folder,
    )
