"""Where everything is kept that is downloaded or built once for all: jars, and the programs of tests and try-outs."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "LAKEWARDEN_CACHE"


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """`$LAKEWARDEN_CACHE`, else `lakewarden` in `$XDG_CACHE_HOME`, else in `~/.cache`. It need not exist."""
    variables = os.environ if environ is None else environ
    if chosen := variables.get(CACHE_VARIABLE):
        return Path(chosen).expanduser().absolute()
    base = variables.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "lakewarden"
