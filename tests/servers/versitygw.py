"""A real versitygw for tests: a second S3 server, with its own reading of signatures; it has no STS."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import ClassVar

import pytest

from standalone.s3.programs import VERSITYGW
from tests.servers.s3_server import S3Server, running


class VersityServer(S3Server):
    PROGRAM: ClassVar = VERSITYGW


def start() -> AbstractContextManager[VersityServer]:
    return running(VersityServer)


@pytest.fixture(scope="session")
def versitygw() -> Iterator[VersityServer]:
    """One for all tests of a process, each with a bucket of its own."""
    with start() as server:
        yield server
