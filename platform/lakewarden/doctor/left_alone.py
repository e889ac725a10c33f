"""Checks which stores are left alone, because they failed again and again."""

from collections.abc import Iterator
from typing import Final

import msgspec
import urllib3

from lakewarden.config import Config
from lakewarden.doctor.findings import Finding, warn
from lakewarden.storage.breaker import left_alone
from lakewarden.timed_connections import timed_pools

_TIMEOUT_S: Final = 2.0
_MOST_BYTES: Final = 64 * 1024
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 nobody listens here


def examine(_: Config) -> Iterator[Finding]:
    """By this process: for a page of the server itself."""
    for each in left_alone():
        yield warn(
            f"warehouse {each.kind} {each.place}",
            f"has not been asked by this process for {each.seconds:.0f} s, and {each.refused} calls were refused. "
            f"The last fault: {each.fault}",
            fix="repair the store or the warehouse's credential: it is tried again by itself",
        )


def examine_server(settings: Config) -> Iterator[Finding]:
    """By the server with these settings, if one is running on this machine: how many, as `/health` says."""
    host = _EVERYWHERE.get(settings.server.host, settings.server.host)
    address = f"http://{host}:{settings.server.port}/health"
    with timed_pools(retries=False, timeout=_TIMEOUT_S) as pools:
        try:
            with pools.request("GET", address, preload_content=False, redirect=False) as answer:
                state = msgspec.json.decode(answer.read(_MOST_BYTES), type=dict[str, object])
        except (urllib3.exceptions.HTTPError, msgspec.DecodeError):
            return  # none is running here, or another program
    if found := state.get("storages"):
        yield warn(
            "stores",
            f"{address} says: {found}, because they failed again and again",
            fix="see the warehouses above, the console's page of the server's status, or the metrics "
            "lakewarden_storage_left_alone_seconds",
        )
