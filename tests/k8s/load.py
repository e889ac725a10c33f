"""Load on a server in the cluster: each client keeps its connection, and counts what was not answered well."""

import http.client
import threading
import time
from dataclasses import dataclass, field
from typing import Self


@dataclass
class Load:
    """`clients` threads that ask `path` of `host` until the end; run it where the cluster's addresses are reached."""

    host: str
    port: int
    path: str
    token: str
    clients: int = 4
    answered: int = 0
    failures: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._ask) for _ in range(self.clients)]
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()

    def _ask(self) -> None:
        connection: http.client.HTTPConnection | None = None
        while not self._ended.is_set():
            is_new = connection is None
            connection = connection or http.client.HTTPConnection(self.host, self.port, timeout=30)
            try:
                connection.request("GET", self.path, headers={"Authorization": f"Bearer {self.token}"})
                answer = connection.getresponse()
                content = answer.read()
            except (http.client.HTTPException, OSError) as error:
                connection.close()
                connection = None
                # a kept connection may be closed between two requests: HTTP/1.1 lets every client ask again then
                if is_new or not isinstance(
                    error, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
                ):
                    self._note(f"{type(error).__name__}: {error}")
                continue
            self._note("" if answer.status == 200 else f"{answer.status} {content[:300].decode(errors='replace')}")
            if answer.will_close:
                connection.close()
                connection = None
            time.sleep(0.01)

    def _note(self, failure: str) -> None:
        with self._lock:
            if failure:
                self.failures.append(failure)
            else:
                self.answered += 1


def main(host: str, port: str, path: str, token: str, seconds: str) -> None:
    """Print how many were answered, and each failure, when standard input ends or after `seconds`."""
    import sys  # noqa: PLC0415 for a program of its own

    with Load(host, int(port), path, token) as load:
        waiting = threading.Thread(target=sys.stdin.read, daemon=True)
        waiting.start()
        waiting.join(float(seconds))
    print(load.answered)  # noqa: T201 what the test reads
    for failure in load.failures:
        print(failure)  # noqa: T201


if __name__ == "__main__":
    import sys

    main(*sys.argv[1:])
