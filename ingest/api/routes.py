"""The paths of the gateway: `/lakehouse/<what>`, `/lakehouse/w/<warehouse>/<what>` and with `<project>/<name>`."""

import re
from typing import Final, NamedTuple
from urllib.parse import unquote

_PATH: Final = re.compile(
    rb"/lakehouse(?:/w/(?:(?P<project>[^/]+)/)??(?P<warehouse>[^/]+))?"
    rb"/(?P<what>health|status|flush|metrics|cdc|analytics/status|ws)"
)
_LONGEST: Final = 2048


class Asked(NamedTuple):
    """`warehouse` may be `<project>/<name>` in one; None: the default one."""

    what: str
    warehouse: str | None
    project: str | None


def asked(path: bytes) -> Asked | None:
    """None for what is not the gateway's; `path` is percent-encoded."""
    if len(path) > _LONGEST or not path.startswith(b"/lakehouse"):
        return None
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    project, warehouse = (None if each is None else unquote(each.decode("latin-1")) for each in found.groups()[:2])
    return Asked(found["what"].decode(), warehouse, project)


def label(asked: Asked, method: str) -> str:
    """The route as documents have it, for statistics."""
    middle = "" if asked.warehouse is None else "/w/{warehouse}"
    return f"{method} /lakehouse{middle}/{asked.what}"
