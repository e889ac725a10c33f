"""The callers who are no attackers: how long they wait, and whether they are served."""

import http.client
import threading
import time
from dataclasses import dataclass, field

_CONNECTIONS = 2


@dataclass
class Waits:
    """Milliseconds of each request; `failed` were not answered 200 or 204."""

    ms: list[float] = field(default_factory=list)
    failed: int = 0

    def add(self, other: "Waits") -> None:
        self.ms += other.ms
        self.failed += other.failed

    def at(self, percent: int) -> float:
        ordered = sorted(self.ms)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else float("nan")


def measure(port: int, token: str, paths: list[str], seconds: float) -> Waits:
    """Each of two connections asks for one path after the other, the next as soon as one was answered."""
    found = [Waits() for _ in range(_CONNECTIONS)]
    end = time.monotonic() + seconds

    def ask(waits: Waits) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        number = 0
        while time.monotonic() < end:
            begun = time.perf_counter()
            try:
                connection.request("GET", paths[number % len(paths)], headers={"Authorization": f"Bearer {token}"})
                answer = connection.getresponse()
                answer.read()
                waits.failed += answer.status not in {200, 204}
            except (OSError, http.client.HTTPException):
                waits.failed += 1
                connection.close()
            waits.ms.append((time.perf_counter() - begun) * 1000)
            number += 1
        connection.close()

    threads = [threading.Thread(target=ask, args=[each]) for each in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found[0].add(found[1])
    return found[0]
