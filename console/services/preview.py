"""The first rows of a table, read with the caller's rights by a process that is bounded in time and memory.

The process receives what an engine of the caller would: the metadata, and credentials for the table's own location.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import lru_cache
from threading import Timer
from typing import Final

import msgspec

from catalog.models import Tabular
from catalog.services import client_access, pointer
from catalog.services.client_access import Asked
from console.preview_reader import MISSING_EXTRA, Read, Wanted
from lakewarden import config
from lakewarden.authz.interface import Granted
from lakewarden.config.console import ConsoleConfig
from lakewarden.errors import NotSupported, TooManyRequests, Unavailable
from lakewarden.fair_shares import Shares
from lakewarden.storage.client_access import AccessLevel, ClientRoutes, Delegation
from tenants.models import Warehouse

_COMMAND: Final = (sys.executable, "-P", "-m", "console.preview_reader")
"""`-P`: no code comes from the folder in which the server was started, where others may write."""
_KEPT: Final = ("PATH", "PYTHONPATH", "LANG", "SSL_CERT_FILE", "AWS_CA_BUNDLE")
_CREDENTIALS: Final = frozenset({Delegation.VENDED_CREDENTIALS})
_LOCAL: Final = "local"
_SHARE: Final = 50  # percent of the previews at once that one caller may read
_OVERHEAD: Final = 4
"""Bytes of an answer for each character: what JSON and UTF-8 make of it."""


@dataclass(frozen=True, slots=True)
class Preview:
    columns: list[tuple[str, str]]
    rows: list[list[str | None]]
    columns_in_all: int
    problem: str | None


def read(granted: Granted[Tabular], *, snapshot_id: int | None, routes: ClientRoutes) -> Preview:
    """The rows of a snapshot (None: the current one); `granted` is for reading data.

    Raises TooManyRequests if too many previews are being read, or the caller's are half of them; Unavailable if it
    takes too long or the storage does not answer; NotSupported if the server has not the libraries or the storage gives
    out no credentials for one table.
    """
    settings, caller = config.current().console, granted.context.caller.id
    places = _places(settings.previews_at_once)
    if not places.take(caller):
        raise TooManyRequests("Too many previews are being read: try again in some seconds", retry_after_s=3)
    try:
        request = _request(granted, settings, snapshot_id=snapshot_id, routes=routes)
        found = _answer(msgspec.json.encode(request), settings)
    finally:
        places.give_back(caller)
    return Preview(found.columns, found.rows, found.columns_in_all, found.problem)


@lru_cache(maxsize=1)
def _places(count: int) -> Shares:
    return Shares(count, percent=_SHARE)


def _request(
    granted: Granted[Tabular], settings: ConsoleConfig, *, snapshot_id: int | None, routes: ClientRoutes
) -> Wanted:
    found, warehouse = granted.target, granted.target.namespace.warehouse
    return Wanted(
        metadata=msgspec.Raw(pointer.load(granted).metadata),
        location=found.location,
        properties=_properties(warehouse, found.location, routes, settings),
        snapshot_id=snapshot_id,
        rows=settings.preview_rows,
        columns=settings.preview_columns,
        characters=settings.preview_characters,
        seconds=settings.preview_s + 1,
        memory_bytes=settings.preview_memory_mib * 1024 * 1024,
        local_base=_local_base(warehouse),
    )


def _local_base(warehouse: Warehouse) -> str | None:
    profile = warehouse.storage_profile
    return str(profile["base-path"]) if profile["type"] == _LOCAL else None


def _properties(warehouse: Warehouse, location: str, routes: ClientRoutes, settings: ConsoleConfig) -> dict[str, str]:
    if _local_base(warehouse) is not None:
        return {}
    asked = Asked(_CREDENTIALS, routes)
    access = client_access.client_access(warehouse, location, AccessLevel.READ, asked)
    if not access.credentials:  # without them the library would look for keys of the server
        raise NotSupported("This warehouse gives out no credentials for one table, so there is no preview of its rows")
    timeout = str(settings.preview_s)
    return {**client_access.properties(access), "s3.connect-timeout": timeout, "s3.request-timeout": timeout}


def _answer(request: bytes, settings: ConsoleConfig) -> Read:
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment |= {"AWS_EC2_METADATA_DISABLED": "true", "ARROW_DEFAULT_MEMORY_POOL": "system", "HOME": "/nonexistent"}
    most = settings.preview_rows * settings.preview_columns * settings.preview_characters * _OVERHEAD + 1_000_000
    with subprocess.Popen(
        _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as reader:
        timer = Timer(settings.preview_s, reader.kill)
        timer.start()
        try:
            answer = _exchanged(reader, request, most)
        finally:
            timer.cancel()
            reader.kill()
    if reader.returncode == MISSING_EXTRA:
        raise NotSupported("This server cannot read data files: it needs the extra `preview` (lakewarden[preview])")
    try:
        return msgspec.json.decode(answer, type=Read)
    except msgspec.DecodeError as error:  # it was ended by the timer, or by the kernel
        raise Unavailable(
            f"The rows could not be read within {settings.preview_s} seconds and {settings.preview_memory_mib} MiB"
        ) from error


def _exchanged(reader: "subprocess.Popen[bytes]", request: bytes, most: int) -> bytes:
    assert reader.stdin is not None  # noqa: S101 they are pipes
    assert reader.stdout is not None  # noqa: S101
    try:
        reader.stdin.write(request)
        reader.stdin.close()
        answer = reader.stdout.read(most)
        reader.wait()
    except BrokenPipeError:
        return b""
    return answer
