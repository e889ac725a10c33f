"""The Iceberg REST Compatibility Kit, the Java reference's own catalog and view tests, against a real server."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
import urllib3

from tests.conformance.kit_stack import WAREHOUSE
from tests.conformance.sweeping_proxy import FIXED_PLACES, sweeping
from tests.servers.lakewarden_server import DevServer, start_dev

KIT = Path(__file__).parents[2].parent / "shared" / "rck" / "run-rck.sh"
SUMMARY = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")
FOLDER = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
NEEDED = 149
"""What the kit has for catalogs with nested namespaces; eight more of its tests are switched off in the kit itself."""


def cache() -> Path:
    """Where downloads are kept between runs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LAKEWARDEN_CACHE") or Path(base, "lakewarden"), "rck")


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
    for place in FIXED_PLACES:
        assert place not in before, f"{place} is in the kit's way, perhaps from a run that was killed: remove it"
    yield
    for folder in made_by_us() - before:
        shutil.rmtree(folder)


@pytest.fixture
def server(fixed_places: None) -> Iterator[DevServer]:
    with start_dev(command=(sys.executable, str(Path(__file__).with_name("kit_stack.py")))) as running:
        yield running


@pytest.mark.timeout(1800)
def test_the_kit_passes_in_full(server: DevServer, tmp_path: Path) -> None:
    """`RCK_SELECT` in the environment runs a single class or method while developing, and needs one pass."""
    assert KIT.is_file(), "The kit's runner is not beside this checkout: shared/rck/run-rck.sh"
    reports = Path(os.environ.get("RCK_REPORTS", tmp_path))
    address = urlsplit(server.info.catalog_uri)
    with sweeping(address.netloc) as proxy:
        done = subprocess.run(
            [KIT, address._replace(netloc=proxy).geturl(), server.info.warehouse.name, token(server)],
            env={**os.environ, "RCK_CACHE": str(cache()), "RCK_REPORTS": str(reports)},
            capture_output=True,
            text=True,
            check=False,
        )
    said = f"{done.stdout}\n{done.stderr}\nReports: {reports}"
    summary = SUMMARY.search(done.stdout)
    assert summary is not None, said
    passed, failed, _ = (int(number) for number in summary.groups())
    assert failed == 0, said
    assert passed >= (NEEDED if "RCK_SELECT" not in os.environ else 1), said
