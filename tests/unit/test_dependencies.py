"""Every imported library is declared: none is used that is only installed because another library needs it."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OWN = {path.name for path in (*ROOT.iterdir(), *(ROOT / "platform").iterdir()) if any(path.glob("*.py"))} | {"tests"}
SERVER = ("platform", "catalog", "ingest", "management", "permissions", "tenants", "manage.py")


def declared(*extras: str, dev: bool = False) -> set[str]:
    wanted = list(PROJECT["project"]["dependencies"])
    for extra in extras:
        wanted += PROJECT["project"]["optional-dependencies"][extra]
    if dev:
        wanted += PROJECT["dependency-groups"]["dev"]
    return {plain(re.split(r"[^A-Za-z0-9._-]", each)[0]) for each in wanted}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(*places: str) -> dict[str, str]:
    """Each foreign module that the code of `places` imports, and a file that does."""
    listed = subprocess.run(["git", "ls-files", *places], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = {}
    for name in listed.splitlines():
        if name.endswith(".py") and (ROOT / name).is_file():
            for module in modules((ROOT / name).read_text(encoding="utf-8")):
                found[module] = name
    return {module: name for module, name in found.items() if module not in OWN | sys.stdlib_module_names}


def modules(code: str) -> set[str]:
    named: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named.add(node.module)
    return {name.split(".")[0] for name in named}


def undeclared(found: dict[str, str], known: set[str]) -> list[str]:
    brought_by = packages_distributions()
    return [
        f"{name} imports {module}"
        for module, name in found.items()
        if not {plain(each) for each in brought_by.get(module, [])} & known
    ]


@pytest.mark.parametrize(
    ("places", "known"),
    [
        (SERVER, declared("tracing")),
        (("console",), declared("preview")),
        (("pipeline",), declared("spark")),
        (("standalone", "demo"), declared("spark", "embedded")),
        (("tests", "benchmarks", "scripts"), declared("spark", "embedded", "tracing", dev=True)),
    ],
    ids=["server", "console", "pipeline", "standalone", "development"],
)
def test_every_import_is_declared(places: tuple[str, ...], known: set[str]) -> None:
    found = imported(*places)
    assert found
    assert undeclared(found, known) == []


def test_an_undeclared_import_is_noticed() -> None:
    found = dict.fromkeys(modules("import json\nfrom yaml import load\nimport tests.unit") - OWN, "here.py")
    del found["json"]
    assert undeclared(found, declared()) == []
    assert undeclared(found, declared() - {"pyyaml"}) == ["here.py imports yaml"]
