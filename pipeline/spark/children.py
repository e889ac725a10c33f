"""Makes a child process end with this one, even after kill -9."""

import ctypes
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> Callable[[], None] | None:
    """For `Popen(preexec_fn=...)`: the kernel ends the child with the thread that started it.

    Only Linux has this; elsewhere None, and a child ends by itself. The library is opened here, before the fork.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return tie
