"""Checks of `make check` that no linter does: migrations complete, lock current, nothing that must not be published."""

import os
import re
import subprocess
import sys
from pathlib import Path

from scripts import write_reference

ROOT = Path(__file__).parent.parent
MACHINE_PATHS = re.compile(r"(?<![\w$}])/(?:root|home/\w+|work)/(?!\.\.)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"`([A-Za-z_]\w*/[\w/*.-]+\.py)`")
PLACES = [
    ("", ROOT),
    ("", ROOT / "platform"),
    ("", ROOT / "platform" / "lakewarden"),
    # as docs/reference/catalog-tests.md shortens them
    ("I/", ROOT / "tests" / "integration" / "catalog"),
    ("C/", ROOT / "tests" / "conformance"),
    ("U/", ROOT / "tests" / "unit" / "iceberg"),
    ("P/", ROOT / "tests" / "property" / "iceberg"),
]
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".sh", ".html", ".css", ".txt", ".cfg", ""}


def problems() -> list[str]:
    return [
        *_migrations(),
        *_lock(),
        *_reference(),
        *_package_in_platform(),
        *_machine_paths(),
        *_links(),
        *_named_files(),
    ]


def _migrations() -> list[str]:
    environment = {**os.environ, "LAKEWARDEN__DATABASE__URL": "postgresql://nobody@127.0.0.1:1/none"}
    command = [sys.executable, "-W", "ignore", "manage.py", "makemigrations", "--check", "--dry-run"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"models and migrations differ:\n{done.stdout}{done.stderr[-500:]}"]


def _lock() -> list[str]:
    uv = os.environ.get("UV")
    if not uv:
        return ["UV does not name the uv to check uv.lock with; run `make check`"]
    done = subprocess.run([uv, "lock", "--check"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"uv.lock does not fit pyproject.toml: {done.stderr.strip()}"]


def _reference() -> list[str]:
    return [
        f"{page.relative_to(ROOT)} is not current: run `python -m scripts.write_reference`"
        for page, made in write_reference.pages()
        if not page.is_file() or page.read_text(encoding="utf-8") != made
    ]


def _package_in_platform() -> list[str]:
    shadow = ROOT / "platform" / "__init__.py"
    return [f"{shadow.relative_to(ROOT)} shadows the standard library's module"] if shadow.exists() else []


def _machine_paths() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = []
    for name in listed.splitlines():
        path = ROOT / name
        if path.suffix in TEXT and path.is_file() and name not in {"uv.lock", "scripts/check_project.py"}:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                if MACHINE_PATHS.search(line):
                    found.append(f"{name}:{number}: a path of one machine: {line.strip()}")
    return found


def _links() -> list[str]:
    """Of the documents at the root; MkDocs checks those of docs/."""
    return [
        f"{page.name} links to {target}, which does not exist"
        for page in sorted(ROOT.glob("*.md"))
        for target in LINK.findall(page.read_text(encoding="utf-8"))
        if not target.startswith(("https://", "http://", "#")) and not (ROOT / target.partition("#")[0]).exists()
    ]


def _named_files() -> list[str]:
    """Of our code, in the documents: `catalog/access.py`, `authz/model.py` of the kernel, `I/test_tables.py`."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return [
        f"{page.relative_to(ROOT)} names {name}, which does not exist"
        for page in sorted(pages)
        for name in CODE.findall(page.read_text(encoding="utf-8"))
        if not any(_is_there(name, below=short, root=root) for short, root in PLACES)
    ]


def _is_there(name: str, *, below: str, root: Path) -> bool:
    return name.startswith(below) and next(root.glob(name.removeprefix(below)), None) is not None


if __name__ == "__main__":
    wrong = problems()
    for problem in wrong:
        print(problem, file=sys.stderr)
    sys.exit(1 if wrong else 0)
