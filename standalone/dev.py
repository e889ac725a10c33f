"""`lakewarden dev`: the development stack in the foreground."""

import signal
import sys
from collections.abc import Callable

from standalone import snippets
from standalone.errors import EmbeddedError
from standalone.options import DevOptions
from standalone.ready import ReadyInfo
from standalone.signals import interrupting
from standalone.stack import DevelopmentStack

INTERRUPTED = 128 + signal.SIGINT


def run(options: DevOptions, *, make: Callable[[DevOptions], DevelopmentStack] = DevelopmentStack) -> int:
    """Serve until TERM or Ctrl-C, and return the exit code; `make` builds the stack.

    0 after serving, 1 after a sentence on stderr, 130 when told to stop before it was ready.
    """

    def serve() -> int:
        with interrupting(), make(options) as stack:
            info = stack.start()
            options.progress.write(_summary(info, options))
            options.progress.flush()
            stack.wait()
        return 0

    return exit_code(serve, interrupted=INTERRUPTED)


def exit_code(serve: Callable[[], int], *, interrupted: int) -> int:
    """That of `serve`; 1 after a sentence on stderr, `interrupted` when it was told to stop."""
    try:
        return serve()
    except EmbeddedError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return interrupted


def _summary(info: ReadyInfo, options: DevOptions) -> str:
    return (
        "Ready. Ctrl-C stops everything.\n"
        f"  catalog      {info.catalog_uri}  (warehouse {info.warehouse.name})\n"
        f"  console      {info.console_uri}  (sign in as {info.person.username}, password {info.person.password})\n"
        f"  tokens       {info.token_endpoint}\n"
        f"  credentials  {options.ready_path}\n"
        f"  SQL          {snippets.spark(options.ready_path)}\n"
        f"\n# Python with PyIceberg\n{snippets.pyiceberg(options.ready_path)}"
        f"\n# Python with DuckDB\n{snippets.duckdb(options.ready_path)}"
    )
