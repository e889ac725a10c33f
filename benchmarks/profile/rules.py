"""Which layer a sample of a stack belongs to: that of its innermost frame in a file that a layer owns."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

OTHER = "everything else"

LAYERS: dict[str, tuple[str, ...]] = {
    "SQL": (
        "site-packages/psycopg",
        "site-packages/django/db/",
        "platform/lakewarden/postgres/",
        "platform/lakewarden/prepared_statements.py",
        "platform/lakewarden/db_transaction.py",
        "platform/lakewarden/hot/coalescer.py",
        "platform/lakewarden/hot/connections.py",
        "catalog/models/",
        "tenants/models/",
    ),
    "files": ("platform/lakewarden/storage/", "catalog/services/metadata_files.py"),
    "engine": ("catalog/iceberg/", "catalog/documents.py"),
    "authentication": ("platform/lakewarden/authn/", "site-packages/joserfc/"),
    "look-up and rights": (
        "catalog/access.py",
        "tenants/access.py",
        "platform/lakewarden/authz/",
        "platform/lakewarden/hot/",
        "catalog/services/hot_queries.py",
        "permissions/",
    ),
    "audit, events, counting": (
        "platform/lakewarden/audit/",
        "platform/lakewarden/events/",
        "platform/lakewarden/usage/",
        "platform/lakewarden/idempotency/",
        "platform/lakewarden/tasks/",
    ),
    "services": ("catalog/services/", "tenants/services/"),
    "request and answer": ("catalog/api/", "catalog/identifiers.py"),
    "front door": (
        "site-packages/uvicorn/",
        "site-packages/granian/",
        "site-packages/django/",
        "site-packages/asgiref/",
        "platform/lakewarden/asgi.py",
        "platform/lakewarden/http/",
        "platform/lakewarden/serving/",
    ),
    "threads and event loop": (
        "/asyncio/",
        "/concurrent/",
        "/threading.py",
        "/queue.py",
        "/selectors.py",
        "site-packages/uvloop/",
    ),
}
"""Parts of file names; the first layer that has one counts, so that what is special stands above what is general."""

_FRAME = re.compile(r"(?P<function>.*) \((?P<file>[^()]+?)(?::\d+)?\)$")


@dataclass(slots=True)
class Shares:
    """Samples of CPU: by layer, and by function for the innermost frames that a layer owns (`where (file)`)."""

    layers: Counter[str]
    functions: Counter[tuple[str, str]]

    @property
    def total(self) -> int:
        return self.layers.total()

    def share(self, layer: str) -> float:
        return self.layers[layer] / self.total if self.total else 0.0


def layer_of(file: str, layers: Mapping[str, Iterable[str]] = LAYERS) -> str | None:
    """None for what is called by every layer: the standard library, codecs."""
    return next((name for name, parts in layers.items() if any(part in file for part in parts)), None)


def shares(folded: Iterable[str]) -> Shares:
    """Of lines `frame;frame;frame count`, the outermost frame first, as py-spy writes them with `--format raw`."""
    found = Shares(Counter(), Counter())
    for line in folded:
        stack, _, count = line.rpartition(" ")
        if not stack or not count.isdecimal():
            continue
        layer, where = _owner(stack.split(";"))
        found.layers[layer] += int(count)
        found.functions[layer, where] += int(count)
    return found


def _owner(frames: list[str]) -> tuple[str, str]:
    for frame in reversed(frames):
        match = _FRAME.match(frame)
        if match is not None and (layer := layer_of(match["file"])) is not None:
            return layer, f"{match['function']} ({_short(match['file'])})"
    return OTHER, frames[-1]


def _short(file: str) -> str:
    """Without what depends on the machine."""
    for root in ("/site-packages/", "/platform/"):
        if root in file:
            return file.rpartition(root)[2]
    for package in ("catalog", "permissions", "tenants"):
        if f"/{package}/" in file:
            return f"{package}/{file.rpartition(f'/{package}/')[2]}"
    return file.rpartition("/")[2]
