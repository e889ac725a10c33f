"""SQL names only tables of its own app: other apps call that app's functions, or embed the text that it exports."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps

ROOT = Path(__file__).parents[2]
ROOMS = ("platform/lakewarden", "catalog", "ingest", "tenants", "permissions", "management", "console")
# tables without a model
MORE = {"reserved_location": "catalog"}
NAMED = re.compile(r"\b(?:from|join|into|update|using)\s+(?:only\s+)?([a-z_][a-z_0-9]*)", re.IGNORECASE)

# the kernel imports no app, so it cannot embed what they export: this list only gets shorter
KNOWN: dict[str, set[str]] = {
    # a row of an app is read with the epoch of its decisions at once, and each change of rights raises that
    "platform/lakewarden/authz/ledger/epochs.py": {"project"},
    # where a list's place lies, and what is below it, is found by the statement that filters the list
    "platform/lakewarden/authz/ledger/visible_objects.py": {"namespace", "warehouse"},
    # counts are stored apart from requests: their project may be gone by then, and a warehouse has its name of today
    "platform/lakewarden/usage/call_statistics.py": {"project", "warehouse"},
}
# it reads everything on a connection of its own, when the server cannot start
READS_ALL = "platform/lakewarden/doctor/"
# an app inside of a package whose other modules are its only readers
AROUND = {"platform/lakewarden/authz/ledger": "platform/lakewarden/authz"}


def owners() -> dict[str, str]:
    """The folder whose SQL may name each table."""
    found = dict(MORE)
    for app in apps.get_app_configs():
        for model in app.get_models():
            folder = Path(app.path)
            inside = folder.is_relative_to(ROOT) and ".venv" not in folder.parts
            # the queue's tables are procrastinate's: `lakewarden.tasks` stands before them
            name = str(folder.relative_to(ROOT)) if inside else "platform/lakewarden/tasks"
            found[model._meta.db_table] = AROUND.get(name, name)
    return found


def texts(path: Path) -> Iterator[str]:
    """Those that are not a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in prose:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "…".join(str(each.value) for each in node.values if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named() -> dict[str, set[str]]:
    """The tables of other apps that each file's SQL names."""
    found: dict[str, set[str]] = {}
    owner = owners()
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if "/migrations/" in name or name.startswith(READS_ALL):
                continue
            tables = {
                table
                for text in texts(path)
                if re.search(r"\b(select|insert|update|delete)\b", text)
                for table in NAMED.findall(text)
                if table in owner and not name.startswith(owner[table] + "/")
            }
            if tables:
                found[name] = tables
    return found


def test_each_table_is_named_by_its_own_app() -> None:
    found = named()
    assert {name: tables - KNOWN.get(name, set()) for name, tables in found.items()} == {key: set() for key in found}


def test_what_is_mended_is_not_excused_any_longer() -> None:
    found = named()
    assert {name: tables - found.get(name, set()) for name, tables in KNOWN.items()} == {key: set() for key in KNOWN}


@pytest.mark.parametrize("table", ["task", "purge_ledger", "procrastinate_jobs", "tabular", "audit_entry", "role"])
def test_the_tables_are_known(table: str) -> None:
    assert table in owners()
