"""A small shell process that ends the children's process groups when this process is gone; for `ManagedProcess`.

It reads the groups from a pipe. The pipe's end means that we ended, however we ended, kill -9 included. On
Linux every child also asks the kernel for a signal (launch.py); the guardian reaches what those children
started themselves, and is the only protection elsewhere. It runs while there is at least one group to guard.
"""

import atexit
import contextlib
import subprocess
import threading

# first the group's own signal (for PostgreSQL, a clean shutdown), after ten seconds KILL
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
        """Send `signal_name` ("KILL", "INT", …) to `group` if this process ends before `drop`."""
        with self._mutex:
            self._signals[group] = signal_name
            self._tell(f"add {signal_name} {group}\n")

    def holds(self, group: int) -> bool:
        return group in self._signals

    def drop(self, group: int) -> None:
        """Stop guarding a group that has ended, because its id may be used again. Idempotent."""
        with self._mutex:
            if self._signals.pop(group, None) is None:
                return
            self._tell(f"drop - {group}\n")
            if not self._signals:
                self._close()

    def close(self) -> None:
        """Make the guardian act now: called at exit, to end what was not stopped."""
        with self._mutex:
            self._close()

    def _tell(self, line: str) -> None:
        if self._shell is None or self._shell.poll() is not None:
            self._close()
            self._shell = self._start()
            # if the guardian was killed, a new one gets the whole list
            line = "".join(f"add {name} {group}\n" for group, name in self._signals.items())
        if self._shell.stdin is not None:
            # if the guardian is killed right now, the next call replaces it
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
