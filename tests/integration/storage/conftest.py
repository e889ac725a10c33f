from collections.abc import Iterator

import pytest

from tests.servers import cloud_stub
from tests.servers.cloud_stub import CloudStub


@pytest.fixture
def cloud() -> Iterator[CloudStub]:
    with cloud_stub.start() as stub:
        yield stub
