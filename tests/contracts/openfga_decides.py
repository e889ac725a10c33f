"""Lets this process decide by OpenFGA."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lakewarden import config
from lakewarden.authz.ledger import change_log
from lakewarden.config import OpenFgaConfig
from lakewarden.ids import new_id
from tests.servers.openfga import OpenFgaServer

PATIENT = ("--request-timeout=20s", "--listObjects-deadline=20s")
"""On a busy machine a second is soon gone; `timeout_s` of the clients is as long."""


@contextmanager
def configured(server: OpenFgaServer) -> Iterator[OpenFgaConfig]:
    """This process decides by OpenFGA, in a new store without tuples."""
    variables = {
        "LAKEWARDEN__AUTHORIZATION__BACKEND": "openfga",
        "LAKEWARDEN__OPENFGA__API_URL": server.url,
        "LAKEWARDEN__OPENFGA__API_TOKEN": server.api_key,
        "LAKEWARDEN__OPENFGA__TIMEOUT_S": "20",
        "LAKEWARDEN__OPENFGA__STORE": f"test-{new_id()}",
    }
    os.environ.update(variables)
    config.current.cache_clear()
    try:
        yield config.current().openfga
    finally:
        for name in variables:
            del os.environ[name]
        config.current.cache_clear()
        change_log.follow(lambda: None)
