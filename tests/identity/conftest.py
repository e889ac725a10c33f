"""For the lanes of identity providers: what every one of them needs of pytest."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    # pyspark leaves the socket of each collected result to the garbage collector
    config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
