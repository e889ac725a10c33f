"""The command line and environment of Lakewarden's own commands in the process tree."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from standalone import ports

AUDIENCE = "lakewarden"
CONSOLE_CLIENT_ID = "lakewarden-console"
_PREFIX = "LAKEWARDEN__"
_OURS = (
    "MODE",
    "SERVER__HOST",
    "SERVER__PORT",
    "SERVER__BASE_URI",
    "DATABASE__",
    "OPENID__",
    "CONSOLE__CLIENT_ID",
    "STORAGE__LOCAL_ROOTS",
    "SECRETS__KEYS",
    "PIPELINE__CATALOG_URI",
    "PIPELINE__OAUTH2_SERVER_URI",
    "PIPELINE__CLIENT",
    "PIPELINE__SCOPE",
    "PIPELINE__DATABASE_URL",
)


def lakewarden_command(*arguments: str) -> list[str]:
    """The command line of `lakewarden <arguments>` in the same Python environment."""
    return [sys.executable, "-m", "lakewarden.cli", *arguments]


def environment(
    *,
    database_url: str | None = None,
    issuer: str | None = None,
    port: int | None = None,
    local_root: Path | None = None,
    keys: Path | None = None,
    more: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment of a Lakewarden command: the caller's with our settings; what is None is left out.

    `more` are settings without their prefix. The caller can set others (a log level), but what the tree depends on
    cannot be overridden.
    """
    ours = {
        "MODE": "development",
        "SERVER__HOST": ports.HOST,
        "SERVER__PORT": None if port is None else str(port),
        "DATABASE__URL": database_url,
        "OPENID__OIDC__ISSUER": issuer,
        "OPENID__OIDC__AUDIENCE": issuer and AUDIENCE,
        "CONSOLE__CLIENT_ID": issuer and CONSOLE_CLIENT_ID,
        "STORAGE__LOCAL_ROOTS": None if local_root is None else str(local_root),
        "SECRETS__KEYS_FILE": None if keys is None else str(keys),
        **(more or {}),
    }
    kept = {name: value for name, value in os.environ.items() if not _is_ours(name)}
    settings = {_PREFIX + name: value for name, value in ours.items() if value is not None}
    # one process is enough for trying; output is unbuffered, so the log is complete after a crash
    return {f"{_PREFIX}SERVER__PROCESSES": "1"} | kept | settings | {"PYTHONUNBUFFERED": "1"}


def _is_ours(name: str) -> bool:
    return name.upper().startswith(tuple(_PREFIX + ours for ours in _OURS))
