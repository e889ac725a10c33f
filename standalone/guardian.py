"""A tiny shell process that kills our children's process groups when we are gone, for `ManagedProcess`.

It reads the groups from a pipe. The pipe's end means that we ended, however we ended, kill -9 included. On
Linux every child also asks the kernel for a signal (launch.py); the guardian reaches what those children
started themselves, and is the only protection elsewhere. It runs while there is at least one group to guard.
"""

import atexit
import contextlib
import subprocess
import threading

# The groups' own signal first (PostgreSQL's is a clean shutdown), after ten seconds the one that always works
_SCRIPT = """
groups=
while read -r verb signal group; do
  case $verb in
    add) groups="$groups $signal:$group" ;;
    drop) kept=; for g in $groups; do [ "${g#*:}" = "$group" ] || kept="$kept $g"; done; groups=$kept ;;
  esac
done
for g in $groups; do kill -s "${g%%:*}" -- "-${g#*:}"; done
for second in 1 2 3 4 5 6 7 8 9 10; do
  left=
  for g in $groups; do kill -s 0 -- "-${g#*:}" && left=yes; done
  [ "$left" ] || exit 0
  sleep 1
done
for g in $groups; do kill -s KILL -- "-${g#*:}"; done
"""


class Guardian:
    """Guards process groups by id. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._signals: dict[int, str] = {}
        self._shell: subprocess.Popen[bytes] | None = None

    def add(self, group: int, *, signal_name: str) -> None:
        """Kill `group` with signal `signal_name` ("KILL", "INT", ...) should we end before `drop`."""
        with self._mutex:
            self._signals[group] = signal_name
            self._tell(f"add {signal_name} {group}\n")

    def holds(self, group: int) -> bool:
        return group in self._signals

    def drop(self, group: int) -> None:
        """Forget a group that has ended (its number may be given to another program). Twice does no harm."""
        with self._mutex:
            if self._signals.pop(group, None) is None:
                return
            self._tell(f"drop - {group}\n")
            if not self._signals:
                self._close()

    def close(self) -> None:
        """Let the guardian do its work now: at the interpreter's end it kills what was not stopped."""
        with self._mutex:
            self._close()

    def _tell(self, line: str) -> None:
        if self._shell is None or self._shell.poll() is not None:
            self._close()
            self._shell = self._start()
            # if somebody killed the one before, the new one learns the whole list
            line = "".join(f"add {name} {group}\n" for group, name in self._signals.items())
        if self._shell.stdin is not None:
            # one that is killed this very moment is replaced at the next call
            with contextlib.suppress(BrokenPipeError):
                self._shell.stdin.write(line.encode())

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "lakewarden-guardian"],
            stdin=subprocess.PIPE,
            bufsize=0,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def _close(self) -> None:
        if self._shell is not None:
            if self._shell.stdin is not None:
                self._shell.stdin.close()
            self._shell.wait()
            self._shell = None


GUARDIAN = Guardian()
atexit.register(GUARDIAN.close)
