"""The Iceberg REST Compatibility Kit, the Java reference's own catalog and view tests, against a real server."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
import urllib3

from tests.conformance.kit import runner
from tests.conformance.kit_stack import WAREHOUSE
from tests.conformance.sweeping_proxy import FIXED_PLACES, sweeping
from tests.servers.lakewarden_server import DevServer, start_dev

FOLDER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
NEEDED = 149
"""What the kit has for catalogs with nested namespaces; eight more of its tests are switched off in the kit itself."""


def token(server: DevServer) -> str:
    """An access token of the application `engine`."""
    engine = server.info.engine
    form = {
        "grant_type": "client_credentials",
        "client_id": engine.client_id,
        "client_secret": engine.client_secret,
        "scope": engine.scope,
    }
    answer = urllib3.request(
        "POST",
        server.info.token_endpoint,
        body=urlencode(form),
        headers={"content-type": "application/x-www-form-urlencoded"},
    )
    return str(json.loads(answer.data)["access_token"])


def made_by_us() -> set[Path]:
    """What the server and the kit make in the warehouse: folders named by ids, and the kit's fixed places."""
    named = {folder for folder in WAREHOUSE.iterdir() if FOLDER.fullmatch(folder.name)}
    return named | {place for place in FIXED_PLACES if place.exists()}


@pytest.fixture
def fixed_places() -> Iterator[None]:
    """Nothing lies where the kit puts tables; after the run, nothing that it made is left."""
    before = made_by_us()
    in_the_way = sorted(map(str, before & set(FIXED_PLACES)))
    assert not in_the_way, f"In the kit's way, perhaps from a run that was killed; remove them: {' '.join(in_the_way)}"
    yield
    for folder in made_by_us() - before:
        shutil.rmtree(folder)


@pytest.fixture
def server(fixed_places: None) -> Iterator[DevServer]:
    with start_dev(command=(sys.executable, str(Path(__file__).with_name("kit_stack.py")))) as running:
        yield running


@pytest.mark.timeout(1800)
def test_the_kit_passes_in_full(server: DevServer, tmp_path: Path) -> None:
    """`LAKEWARDEN_TEST_KIT_SELECT` runs a single class or method while developing, and needs one pass."""
    chosen = os.environ.get("LAKEWARDEN_TEST_KIT_SELECT")
    address = urlsplit(server.info.catalog_uri)
    with sweeping(address.netloc) as proxy:
        uri = address._replace(netloc=proxy).geturl()
        select = (chosen,) if chosen else runner.EVERYTHING
        outcome = runner.run(uri, server.info.warehouse.name, token(server), reports=tmp_path, select=select)
    print(f"\nIceberg REST Compatibility Kit: {outcome}")  # noqa: T201 the figures
    assert outcome.failed == 0, "\n".join([str(outcome), *outcome.told, outcome.console[-4000:]])
    assert outcome.passed >= (1 if chosen else NEEDED), outcome
