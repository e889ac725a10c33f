"""Every how-to is carried out from top to bottom, as it is written, on a server of its own."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.servers.lakewarden_server import start_dev

DOCUMENTS = Path(__file__).parents[3] / "docs" / "how-to"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)

EXPECTED = {
    "provision-over-rest": [
        "200 GET whoami",
        "201 POST project",
        "200 POST warehouse-creation-validation",
        "201 POST warehouse",
        "200 GET warehouse",
        "200 POST warehouse/ID/protection",
        "201 POST user",
        "201 POST user",
        "200 POST role/provision",
        "200 POST role/provision",
        "200 GET role?name=readers",
        "200 GET role?name=loaders",
        "200 GET role?name=loaders",
        "200 GET role?name=engineers",
        "204 POST warehouse/ID/grants",
        "200 GET warehouse/ID/grants",
        "200 GET warehouse/ID/actions?principalUser=oidc~4f1c2f6e",
        "200 POST action/batch-check",
        "409 DELETE warehouse/ID",
        "200 POST warehouse/ID/protection",
        "204 DELETE warehouse/ID",
        "204 DELETE user/oidc~nightly-load",
        "204 DELETE project",
    ],
}
TOLD = {
    "provision-over-rest": [
        '"outcome":"created"',
        '"outcome":"unchanged"',
        '{"id":"ada-reads","allowed":true}',
        '{"id":"ada-drops","allowed":false}',
        "is protected",
    ],
}
"""What a reader sees among the rest."""


def test_every_how_to_that_calls_the_server_is_run() -> None:
    """The others tell of make targets and settings, which have lanes of their own."""
    assert {path.stem for path in DOCUMENTS.glob("*.md") if "READY" in path.read_text()} == EXPECTED.keys()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_how_to_works_as_it_is_written(name: str) -> None:
    script = "set -eu\n" + "".join(_BLOCK.findall((DOCUMENTS / f"{name}.md").read_text()))
    with start_dev() as server:
        done = subprocess.run(
            ["bash", "-c", script],
            check=False,
            env={**os.environ, "READY": str(server.data_dir / "ready.json")},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    calls = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", done.stderr).splitlines()
    assert calls == EXPECTED[name]
    assert [text for text in TOLD[name] if text not in done.stdout] == []
