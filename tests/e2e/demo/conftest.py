from collections.abc import Iterator
from dataclasses import asdict

import pytest

from tests.e2e.demo.runs import DemoRun, Ready, run_demo
from tests.servers.lakewarden_server import start_dev


@pytest.fixture(scope="session")
def dev_server() -> Iterator[Ready]:
    """The content of a running development server's ready file."""
    with start_dev() as server:
        yield asdict(server.info)


@pytest.fixture(scope="session")
def first_run(dev_server: Ready, tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    run = run_demo(dev_server, tmp_path_factory.mktemp("demo"))
    assert run.code == 0, run.said + run.errors
    return run
