"""A process that forks workers on request: real processes, ready in milliseconds, whom a test may kill -9.

Lines on its standard input: "start" (the answer on its standard output is the pid), "kill <pid>" (the answer is
"killed", or "ended" when it had ended by itself), and at the end of the input all are killed. Each worker appends
"<pid> <id>" to the file that is the argument once it is registered.
"""

import os
import signal
import sys
from pathlib import Path

import django
from procrastinate.manager import JobManager


class Nursery:
    def __init__(self, registered: Path) -> None:
        self._registered = registered
        self._children: set[int] = set()

    def start(self) -> str:
        pid = os.fork()
        if pid == 0:
            self._work()
            os._exit(0)
        self._children.add(pid)
        return str(pid)

    def kill(self, pid: int) -> str:
        """Ended processes are not reaped before, so that their pids are not used again."""
        ended, _ = os.waitpid(pid, os.WNOHANG)
        if not ended:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._children.remove(pid)
        return "ended" if ended else "killed"

    def kill_all(self) -> None:
        for pid in list(self._children):
            self.kill(pid)

    def _work(self) -> None:
        from lakewarden.tasks import worker  # noqa: PLC0415 needs Django's apps
        from lakewarden.tasks.held_jobs import HeldJobs  # noqa: PLC0415

        registered, register = self._registered, HeldJobs.register_worker

        async def announced(manager: JobManager) -> int:
            number = await register(manager)
            with registered.open("a") as file:
                file.write(f"{os.getpid()} {number}\n")
            return number

        HeldJobs.register_worker = announced  # type: ignore[method-assign, assignment]
        worker.run()


def main(registered: Path) -> None:
    django.setup()
    import lakewarden.tasks.worker  # noqa: F401, PLC0415 once for all

    nursery = Nursery(registered)
    for line in sys.stdin:
        word, *pid = line.split()
        print(nursery.start() if word == "start" else nursery.kill(int(pid[0])), flush=True)  # noqa: T201 the answer
    nursery.kill_all()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
