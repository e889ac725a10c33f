"""Everything that the documents name exists: commands, make targets, settings, and the versions that were tried."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.cli.commands import main
from pipeline.spark.artifacts import artifacts
from pipeline.spark.jars import CATALOG_JARS
from tests.servers import trino

ROOT = Path(__file__).parents[3]
# decisions and the changelog tell of their time
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "adr"),
]
BASES = (".", "platform", "platform/lakewarden", "catalog", "docs", "tests", "integrations")
"""Where paths in documents begin."""
SHORT = {
    "C": "tests/conformance",
    "I": "tests/integration/catalog",
    "P": "tests/property/iceberg",
    "U": "tests/unit/iceberg",
}
"""Folders as docs/reference/catalog-tests.md abbreviates them."""
MADE = {"site/"}
"""What commands make, which a fresh clone does not have."""
ENGINES = (ROOT / "docs" / "how-to" / "engines.md").read_text()


def named(pattern: str) -> Iterator[tuple[str, str]]:
    """Each match's group, with its page."""
    for page in PAGES:
        for found in re.finditer(pattern, page.read_text(), re.MULTILINE):
            yield found[1], page.relative_to(ROOT).as_posix()


def exists(path: str) -> bool:
    """Whether a file or folder fits the path, in which `*` and `<…>` stand for any name."""
    first, _, rest = re.sub(r"<[a-z]+>", "*", path).rstrip("/").partition("/")
    pattern = "/".join(filter(None, (SHORT.get(first, first), rest)))
    return any(next((ROOT / base).glob(pattern), None) for base in BASES)


def test_every_file_and_folder_exists() -> None:
    paths = list(named(r"(?<![\w/`])`([\w*][\w.*<>-]*/(?:[\w.*<>-]+/)*(?:[\w*<>-]+\.(?:py|md|txt|toml|rego|java))?)`"))
    assert len(paths) > 50
    assert [each for each in paths if each[0] not in MADE and not exists(each[0])] == []


def test_every_module_of_the_kernel_has_a_floor() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    rows = page.partition("## Floors of the kernel")[2].partition("\n## ")[0]
    named_modules = re.findall(r"`([a-z_]+)`", "".join(re.findall(r"^\|.*$", rows, re.MULTILINE)))
    found = [each for each in (ROOT / "platform" / "lakewarden").iterdir() if not each.name.startswith("__")]
    modules = [each.stem for each in found if each.suffix == ".py" or (each / "__init__.py").exists()]
    assert sorted(named_modules) == sorted(modules)


def test_every_command_exists() -> None:
    unknown = [each for each in named(r"(?:^|`|bin/)lakewarden ([a-z][a-z-]+)") if each[0] not in main.commands]
    assert unknown == []


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert [each for each in named(r"(?:^|`)make ([a-z][a-z0-9-]*)") if each[0] not in targets] == []


def test_every_setting_exists() -> None:
    reference = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    known = {
        re.sub(r"<ID>", "[A-Z]+", name)
        for name in re.findall(r"^\| `(LAKEWARDEN__[A-Z0-9_<>a-z]+)` \|", reference, re.MULTILINE)
    }
    pattern = re.compile("|".join(known))
    whole = named(r"\b(LAKEWARDEN__[A-Z0-9_]*[A-Z0-9])(?![\w<…])")
    assert [each for each in whole if not pattern.fullmatch(each[0])] == []


@pytest.mark.parametrize("jar", CATALOG_JARS)
def test_sparks_jars_are_those_that_the_tests_use(jar: str) -> None:
    assert artifacts()[jar].coordinates in ENGINES


def test_versions_that_were_tried_are_those_that_the_tests_use() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    versions = dict(re.split(r"(?:\[\w+\])?==", each) for group in groups.values() for each in group)
    assert f"| PyIceberg | {versions['pyiceberg']} | yes" in ENGINES
    assert f"| Spark | {versions['pyspark']} with" in ENGINES
    assert f"| Trino | {trino.VERSION} | yes" in ENGINES
