"""Counts the statements that a server sends to Postgres, by having Postgres log them for a moment."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from benchmarks.machine import processes

_SETTINGS = {"log_statement": "all", "log_line_prefix": "port=%r ", "log_parameter_max_length": "0"}
_LINE = re.compile(r"^port=[^ (]*\((\d+)\) LOG:  (?:statement|execute [^:]*):\s*(\w+)", re.MULTILINE)
_TRANSACTION_WORDS = {"BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"}
_SETTLE_S = 0.3


@dataclass(slots=True)
class Count:
    """Statements seen: `transaction` are BEGIN, COMMIT and the like, `queries` all others."""

    queries: int = 0
    transaction: int = 0


@dataclass(frozen=True, slots=True)
class StatementLog:
    """`url` is a superuser's; `log` is the file that Postgres writes to; only `server`'s statements are counted."""

    url: str
    log: Path
    server: int

    @classmethod
    def find(cls, *, server: int | None, postgres: int | None) -> "StatementLog | None":
        """That of a development server: its address is in the server's environment. None for any other."""
        if server is None or postgres is None:
            return None
        url = database_url(server)
        with suppress(OSError):
            log = Path(f"/proc/{postgres}/fd/2").readlink()
            return cls(url, log, server) if url and log.is_file() else None
        return None

    @contextmanager
    def counting(self) -> Iterator[Count]:
        """The count is complete when the block has ended."""
        count = Count()
        with psycopg.connect(self.url, autocommit=True) as connection:
            try:
                for name, value in _SETTINGS.items():
                    command = sql.SQL("alter system set {} = {}").format(sql.Identifier(name), sql.Literal(value))
                    connection.execute(command)
                self._reload(connection)
                start = self.log.stat().st_size
                ports = self._ports()
                yield count
                ports |= self._ports()
                time.sleep(_SETTLE_S)  # the log is written by other processes
            finally:
                for name in _SETTINGS:
                    connection.execute(sql.SQL("alter system reset {}").format(sql.Identifier(name)))
                self._reload(connection)
        self._read(count, start, ports)

    def _reload(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        connection.execute("select pg_reload_conf()")
        time.sleep(_SETTLE_S)  # every session reads the settings by itself

    def _ports(self) -> set[int]:
        database = urlsplit(self.url).port or 5432
        return {port for each in processes.tree(self.server) for port in processes.ports_towards(each.pid, database)}

    def _read(self, count: Count, start: int, ports: set[int]) -> None:
        with self.log.open("rb") as source:
            source.seek(start)
            text = source.read().decode(errors="replace")
        for port, word in _LINE.findall(text):
            if int(port) in ports:
                if word.upper() in _TRANSACTION_WORDS:
                    count.transaction += 1
                else:
                    count.queries += 1


def database_url(server: int) -> str | None:
    """The address of a superuser in the database of a development server; None for any other server."""
    return processes.environment_of(server).get("LAKEWARDEN__DATABASE__URL")


def analyse(server: int | None) -> None:
    """Give the planner fresh statistics of all tables, where the database can be reached."""
    if server is not None and (url := database_url(server)):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("analyze")
