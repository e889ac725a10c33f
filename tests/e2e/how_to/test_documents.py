"""Every tutorial and how-to that calls a server is carried out from top to bottom, as it is written."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.lakewarden_server import start_dev

ROOT = Path(__file__).parents[3]
DOCUMENTS = ROOT / "docs"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_CALL = re.compile(r"^\d{3} [A-Z]+ ", re.MULTILINE)
_CHAPTER = re.compile(r"^## (.+)$", re.MULTILINE)
_SAVED = re.compile(r"Save this as `([\w.]+)`[^`]*(?:`[^`]+`[^`]*)*?^```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


@dataclass(frozen=True)
class Expected:
    """What a reader sees: the calls with their statuses, in order, and pieces of text among the rest."""

    calls: tuple[str, ...]
    told: tuple[str, ...]
    on_demo: bool = False
    """Whether `make demo` has run before, not `make dev`."""
    chapters: tuple[str, ...] = ()
    """Those that are carried out, the beginning as ``; without any, all. The others need outside programs."""


EXPECTED = {
    "how-to/provision-over-rest.md": Expected(
        calls=(
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
        ),
        told=(
            '"outcome":"created"',
            '"outcome":"unchanged"',
            '{"id":"ada-reads","allowed":true}',
            '{"id":"ada-drops","allowed":false}',
            "is protected",
        ),
    ),
    "how-to/deletion-and-undrop.md": Expected(
        calls=(
            "200 POST /warehouse/ID/delete-profile",
            "200 POST /ID/namespaces",
            "200 POST /ID/namespaces/sales/tables",
            "409 DELETE /ID/namespaces/sales",
            "204 DELETE /ID/namespaces/sales?recursive=true",
            "404 GET /ID/namespaces/sales",
            "200 GET /warehouse/ID/deleted-namespaces",
            "200 GET /warehouse/ID/deleted-namespaces",
            "204 POST /warehouse/ID/deleted-tabulars/undrop",
            "200 GET /ID/namespaces/sales/tables",
            "200 GET /ID/namespaces/sales/tables?returnUuids=true",
            "200 POST /warehouse/ID/table/ID/protection",
            "409 DELETE /ID/namespaces/sales/tables/orders",
            "409 DELETE /ID/namespaces/sales?recursive=true",
            "204 DELETE /ID/namespaces/sales?recursive=true&force=true&purgeRequested=true",
            "200 GET /warehouse/ID/deleted-namespaces",
            "200 POST /warehouse/ID/task/list",
        ),
        told=('"name":"sales"', '["orders"]', "ProtectedException\nProtectedException\n[]\n", "tabular_purge"),
    ),
    "how-to/generic-tables.md": Expected(
        calls=(
            "200 POST /ID/namespaces",
            "200 POST /ID/namespaces/zoo/generic-tables",
            "200 GET /ID/namespaces/zoo/generic-tables/birds",
            "200 GET /ID/namespaces/zoo/tables",
            "404 GET /ID/namespaces/zoo/tables/birds",
            "409 POST /ID/namespaces/zoo/tables",
            "200 POST /warehouse/ID/search-tabular",
            "201 POST /user",
            "200 GET /ID/namespaces/zoo/generic-tables",
            "204 POST /warehouse/ID/generic-table/ID/grants",
            "200 GET /warehouse/ID/generic-table/ID/grants?principalUser=oidc~ada",
            "200 POST /warehouse/ID/generic-table/ID/protection",
            "409 DELETE /ID/namespaces/zoo/generic-tables/birds",
            "200 POST /warehouse/ID/generic-table/ID/protection",
            "200 POST /warehouse/ID/delete-profile",
            "204 DELETE /ID/namespaces/zoo/generic-tables/birds",
            "200 GET /warehouse/ID/deleted-tabulars",
            "204 POST /warehouse/ID/deleted-tabulars/undrop",
            "200 GET /ID/namespaces/zoo/generic-tables/birds",
        ),
        told=(
            "version 1 rows 3\n[]\nNoSuchTableException\nAlreadyExistsException\n",
            '["birds","generic-table"]',
            '["select"]',
            "ProtectedException",
        ),
    ),
    "how-to/tags.md": Expected(
        calls=(
            "201 POST /tag-definition",
            "200 GET /tag-definition",
            "200 POST /ID/namespaces",
            "200 POST /ID/namespaces/people/tables",
            "200 GET /ID/namespaces/people?returnUuid=true",
            "200 GET /ID/namespaces/people/tables?returnUuids=true",
            "200 PUT /warehouse/ID/namespace/ID/tags/privacy.level",
            "200 PUT /warehouse/ID/table/ID/column/email/tags/privacy.level",
            "400 PUT /warehouse/ID/table/ID/tags/privacy.level",
            "200 GET /warehouse/ID/table/ID/tags",
            "200 GET /warehouse/ID/table/ID/tags?effective=true",
            "200 GET /warehouse/ID/table/ID/column-tags",
            "200 POST /warehouse/ID/search-tabular",
            "200 GET /tag-definition/ID/attachments?targetType=column",
            "201 POST /user",
            "204 POST /tag-definition/ID/grants",
            "204 POST /warehouse/ID/grants",
            "200 GET /warehouse/ID/table/ID/actions?principalUser=oidc~steward",
            "409 DELETE /tag-definition/ID",
            "204 DELETE /warehouse/ID/namespace/ID/tags/privacy.level",
            "204 DELETE /warehouse/ID/table/ID/column/email/tags/privacy.level",
            "204 DELETE /tag-definition/ID",
        ),
        told=(
            '["privacy.level"]',
            "'secret' is not an allowed value",
            '[]\n["internal","namespace"]\n["email","personal"]\n["addresses"]\n"personal"\n',
            '["get_metadata","get_tasks","include_in_list","manage_tags"]',
            "TagInUseException",
        ),
    ),
    "how-to/data-contracts.md": Expected(
        calls=(
            "200 POST /ID/namespaces",
            "200 GET /ID/namespaces/shop?returnUuid=true",
            "200 PUT /warehouse/ID/namespace/ID/contract",
            "409 POST /ID/namespaces/shop/tables",
            "200 POST /ID/namespaces/shop/tables",
            "200 GET /ID/namespaces/shop/tables/orders",
            "409 POST /ID/namespaces/shop/tables/orders",
            "200 POST /warehouse/ID/table/ID/contract/check",
            "200 GET /warehouse/ID/table/ID/contract/effective",
            "204 DELETE /warehouse/ID/namespace/ID/contract",
            "200 POST /ID/namespaces/shop/tables/orders",
        ),
        told=(
            "'owner' is missing or empty (rule required-properties, set on namespace shop)",
            "'email' would be dropped",
            "false\n",
            '"total"',
            '["schema-compatibility",null,"shop"]',
        ),
    ),
    "how-to/events.md": Expected(
        calls=(),
        told=("createWarehouse", "[false,", "data: {"),
        chapters=("Without a broker: over REST",),
    ),
    "how-to/stream-changes.md": Expected(
        calls=(),
        told=('"isDuplicate":false', '"isDuplicate":true', "'type': 'ack'", "'sequenceNumber': 1"),
        chapters=("", "Requests", "A socket"),
    ),
    "tutorial/two-engines-two-users.md": Expected(
        calls=(
            "404 GET config?warehouse=demo",
            "200 POST warehouse/ID/search-tabular",
            "204 POST warehouse/ID/table/ID/grants",
            "200 GET config?warehouse=demo",
            "200 GET ID/namespaces/nyc/tables",
            "200 GET ID/namespaces/nyc/tables/airports",
            "404 GET ID/namespaces/nyc/tables/flights",
            "403 DELETE ID/namespaces/nyc/tables/airports",
            "200 GET warehouse/ID/table/ID/explanation?action=commit&principalUser=oidc~analyst",
            "204 POST warehouse/ID/table/ID/grants",
            "404 GET ID/namespaces/nyc/tables/airports",
            "200 GET audit?actor=oidc~analyst",
            "200 GET audit?action=updateGrants",
        ),
        told=(
            "flights\nplanes\nweather\n16\n",
            "{'origin': 'LGA', 'distance_max': 1620}",
            "EWR\t4963\nJFK\t4983\nLGA\t1620\n",
            '["airports"]',
            '{"allowed":false,"missing":[["write"]]}',
            "allowed\tlist_tables",
            "writes",
        ),
        on_demo=True,
    ),
}


def test_every_document_that_calls_a_server_is_run() -> None:
    """The others are about make targets, settings and outside programs, which have lanes of their own."""
    calling = {path for path in DOCUMENTS.rglob("*.md") if "READY=" in path.read_text()}
    assert {path.relative_to(DOCUMENTS).as_posix() for path in calling} == EXPECTED.keys()


def carried_out(text: str, chapters: tuple[str, ...]) -> str:
    beginning, *rest = _CHAPTER.split(text)
    found = {"": beginning, **dict(zip(rest[::2], rest[1::2], strict=True))}
    return "".join(found[each] for each in chapters) if chapters else text


@contextmanager
def ready_file(*, on_demo: bool) -> Iterator[Path]:
    """Of a server that the reader has started."""
    with start_dev() as server:
        path = server.data_dir / "ready.json"
        if on_demo:
            command = [sys.executable, "-m", "demo", "--ready-file", str(path)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=480)
        yield path


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_the_document_works_as_it_is_written(name: str, tmp_path: Path) -> None:
    expected = EXPECTED[name]
    text = carried_out((DOCUMENTS / name).read_text(), expected.chapters)
    for file, content in _SAVED.findall(text):
        (tmp_path / file).write_text(content)
    script = "set -eu\n" + "".join(_BLOCK.findall(text))
    with ready_file(on_demo=expected.on_demo) as ready:
        done = subprocess.run(
            ["bash", "-c", script],
            check=False,
            cwd=tmp_path if expected.chapters else ROOT,
            env={**os.environ, "READY": str(ready), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    calls = tuple(_ID.sub("ID", line) for line in done.stderr.splitlines() if _CALL.match(line))
    assert calls == expected.calls
    assert [text for text in expected.told if text not in done.stdout] == []
