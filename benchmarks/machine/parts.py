"""Which processes are the server, which are Postgres, and what each used; for the runner."""

from dataclasses import dataclass

from benchmarks.failures import BenchmarkError
from benchmarks.load.closed_loop import Cpu
from benchmarks.machine import processes
from benchmarks.machine.cores import Cores, pin

SERVER = "server"
POSTGRES = "postgres"


@dataclass(frozen=True, slots=True)
class Parts:
    """`server` and `postgres` are the roots of process trees; None is not measured."""

    server: int | None = None
    postgres: int | None = None

    @classmethod
    def find(cls, port: int, *, below: int | None) -> "Parts":
        """The process that listens on `port`, and the Postgres in the tree of process `below`."""
        if not processes.is_supported():
            return cls()
        server = processes.listener(port)
        if below is None:
            return cls(server)
        tree = processes.tree(below)
        if not tree:
            raise BenchmarkError(f"The server's process {below} has ended: start it again")
        names = {each.pid: each.name for each in tree}
        tops = [each.pid for each in tree if each.name == POSTGRES and names.get(each.parent) != POSTGRES]
        return cls(server, next(iter(tops), None))

    def cpu(self) -> Cpu:
        """CPU time used since their start, by part."""
        roots = {SERVER: self.server, POSTGRES: self.postgres}
        return {part: processes.cpu_ns(processes.tree(root)) for part, root in roots.items() if root is not None}

    def pin(self, cores: Cores) -> None:
        if self.server is not None:
            pin((each.pid for each in processes.tree(self.server)), cores.server)
        if self.postgres is not None:
            pin((each.pid for each in processes.tree(self.postgres)), cores.rest)
