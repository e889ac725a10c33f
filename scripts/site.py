"""A hook of MkDocs: brings the pages at the repository's root into the site, and lists every decision."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
_AT_THE_ROOT = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(?<=\]\()(?:docs/)?(?=[\w.])(?!https?:)([^)]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the decisions at the end of the navigation, in their order."""
    decisions = sorted(path.relative_to(config.docs_dir).as_posix() for path in Path(config.docs_dir).glob("adr/0*.md"))
    config.nav = [*(config.nav or []), {"Decisions": ["adr/README.md", *decisions]}]
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages; their links are relative to the repository's root."""
    for name, page in _AT_THE_ROOT.items():
        content = _LINK.sub(lambda link: _AT_THE_ROOT.get(link[1], link[1]), (ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=content))
    return files
