"""A process whose database is not there yet waits for it, and tells; one that a database refuses ends."""

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from procrastinate.contrib.django.models import ProcrastinateWorker

from standalone import ports
from tests.integration.tasks.workers import wait_for, worker
from tests.servers.silent_proxy import silent_proxy


def at(url: str, *, port: int | None = None, database: str | None = None) -> str:
    parts = urlsplit(url)
    host, _, old = parts.netloc.rpartition(":")
    return urlunsplit(parts._replace(netloc=f"{host}:{port or old}", path=f"/{database}" if database else parts.path))


def test_a_worker_waits_for_a_database_that_is_started_after_it(
    database: None, database_url: str, tmp_path: Path
) -> None:
    port, log = ports.free_port(), tmp_path / "worker.log"
    with worker(log, LAKEWARDEN__DATABASE__URL=at(database_url, port=port)) as child:
        wait_for(lambda: "Waiting for it for at most 60 s" in log.read_text(), what="the sentence", log=log)
        assert child.poll() is None
        with silent_proxy(urlsplit(database_url).port or 0, port):
            wait_for(ProcrastinateWorker.objects.exists, what="its first sign of life", log=log)
            assert child.poll() is None
            child.kill()
            child.wait(10)
    assert log.read_text().count("Waiting for it") == 1


@pytest.mark.parametrize("start_wait_s", ["0", "1"])
def test_it_ends_with_the_reason_when_its_time_is_over(database_url: str, tmp_path: Path, start_wait_s: str) -> None:
    log, url = tmp_path / "worker.log", at(database_url, port=ports.free_port())
    with worker(log, LAKEWARDEN__DATABASE__URL=url, LAKEWARDEN__DATABASE__START_WAIT_S=start_wait_s) as child:
        assert child.wait(30) == 1
    assert "Error: The database cannot be reached: " in log.read_text()


def test_it_does_not_wait_for_a_database_that_refuses_it(database_url: str, tmp_path: Path) -> None:
    log, url = tmp_path / "worker.log", at(database_url, database="no_such_database")
    with worker(log, LAKEWARDEN__DATABASE__URL=url, LAKEWARDEN__DATABASE__START_WAIT_S="86400") as child:
        assert child.wait(30) == 1
    assert 'database "no_such_database" does not exist' in log.read_text()
