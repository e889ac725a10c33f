"""Load on a server in the cluster: each client keeps its connection, and counts what was not answered well.

Readers load a table; writers commit to one of their own, with an Idempotency-Key, as engines do. A program of its own,
because it must run where the cluster's addresses are reached: it ends with its standard input, and prints a `Told`.
"""

import http.client
import json
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Final

from lakewarden.ids import new_id_text

_PATIENCE_S: Final = 30.0


@dataclass
class Told:
    """What was asked and answered; `last` is the number that a writer was last told to be stored, by its table."""

    seconds: float = 0.0
    reads: int = 0
    commits: int = 0
    median_ms: float = 0.0
    slowest_ms: float = 0.0
    failures: list[str] = field(default_factory=list)
    last: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"{self.reads} reads and {self.commits} commits in {self.seconds:.0f} s (median {self.median_ms:.1f} ms, "
            f"slowest {self.slowest_ms:.0f} ms), {len(self.failures)} failed"
        )


@dataclass
class Load:
    host: str
    port: int
    tables: str
    token: str
    pause_s: float = 0.01
    told: Told = field(default_factory=Told)
    _times: list[float] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, *, readers: Sequence[str], writers: Sequence[str], ending: threading.Thread) -> Told:
        """Until `ending` has ended: a client for each of these tables."""
        began = time.monotonic()
        threads = [threading.Thread(target=self._read, args=(table,)) for table in readers]
        threads += [threading.Thread(target=self._write, args=(table,)) for table in writers]
        for each in threads:
            each.start()
        ending.join()
        self._ended.set()
        for each in threads:
            each.join()
        told = self.told
        told.seconds = time.monotonic() - began
        told.median_ms, told.slowest_ms = median(self._times) * 1000, max(self._times) * 1000
        return told

    def _read(self, table: str) -> None:
        client = _Client(self)
        while not self._ended.is_set():
            if client.ask("GET", table) is not None:
                with self._lock:
                    self.told.reads += 1

    def _write(self, table: str) -> None:
        client, number = _Client(self), 0
        while not self._ended.is_set():
            number += 1
            change = {"updates": [{"action": "set-properties", "updates": {"number": str(number)}}]}
            stored = client.ask("POST", table, change | {"requirements": []})
            if stored is not None:
                assert stored["metadata"]["properties"]["number"] == str(number)
                with self._lock:
                    self.told.commits += 1
                    self.told.last[table] = number

    def note(self, seconds: float, failure: str = "") -> None:
        with self._lock:
            self._times.append(seconds)
            if failure:
                self.told.failures.append(failure)


class _Client:
    def __init__(self, load: Load) -> None:
        self._load = load
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, table: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer; None if it failed, which is noted."""
        headers = {"Authorization": f"Bearer {self._load.token}", "Content-Type": "application/json"}
        if body is not None:
            headers["Idempotency-Key"] = new_id_text()
        path, sent = f"{self._load.tables}/{table}", None if body is None else json.dumps(body)
        began, answer, failure = time.monotonic(), None, ""
        for _ in range(2):
            kept = self._connection
            connection = kept or http.client.HTTPConnection(self._load.host, self._load.port, timeout=_PATIENCE_S)
            try:
                connection.request(method, path, sent, headers)
                got = connection.getresponse()
                content = got.read()
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                self._connection, failure = None, f"{method} {type(error).__name__}: {error}"
                # a kept connection may be closed between two requests: HTTP/1.1 lets every client ask again then
                if kept is not None and isinstance(
                    error, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
                ):
                    continue
                break
            failure = "" if got.status == 200 else f"{method} {got.status} {content[:300].decode(errors='replace')}"
            answer = None if failure else json.loads(content)
            self._connection = None if got.will_close else connection
            break
        self._load.note(time.monotonic() - began, failure)
        time.sleep(self._load.pause_s)
        return answer


def main(*given: str) -> None:
    host, tables, token, readers, writers, pause_s = given
    ending = threading.Thread(target=sys.stdin.read, daemon=True)
    ending.start()
    reading, writing = (list(filter(None, each.split(","))) for each in (readers, writers))
    told = Load(host, 80, tables, token, float(pause_s)).run(readers=reading, writers=writing, ending=ending)
    json.dump(asdict(told), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
