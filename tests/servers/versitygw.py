"""A real versitygw for tests: a second S3 server, with its own reading of signatures; it has no STS."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

import pytest

from tests.servers.go_programs import GoProgram, provide
from tests.servers.s3_server import REGION, Launch, S3Server, running

VERSITYGW: Final = GoProgram("versitygw", "versitygw", "github.com/versity/versitygw/cmd/versitygw")


class VersityServer(S3Server):
    def launch(self) -> Launch:
        # it changes its directory: paths must be absolute
        data, versions = self.directory / "data", self.directory / "versions"
        for folder in (data, versions):
            folder.mkdir(exist_ok=True)
        options = ("--port", self.address, "--region", REGION, "--health", "/health", "--quiet")
        environment = {
            "ROOT_ACCESS_KEY": self.root.access_key_id,
            "ROOT_SECRET_KEY": self.root.secret_access_key,
        }
        command = (provide(VERSITYGW), *options, "posix", "--versioning-dir", versions, data)
        return Launch(command, environment, "/health")


def start() -> AbstractContextManager[VersityServer]:
    return running(VersityServer)


@pytest.fixture(scope="session")
def versitygw() -> Iterator[VersityServer]:
    """One for all tests of a process, each with a bucket of its own."""
    with start() as server:
        yield server
