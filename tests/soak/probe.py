"""Checks that the system has recovered: both replicas answer correctly, and a worker completes a task."""

import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import urllib3

from standalone.ports import HOST
from tests.integration.replicas.pair import SCHEMA, Person
from tests.soak.book import Warehouse

_PATIENCE_S = 5.0
_numbers = count(1)


class NotYet(Exception):
    """Why it is not whole."""


@dataclass
class Probe:
    """Tables of its own in the warehouse whose drops are final."""

    ports: list[int]
    admin: Person
    warehouse: Warehouse

    def __post_init__(self) -> None:
        self._http = urllib3.PoolManager(retries=False, timeout=_PATIENCE_S)
        self._ask(self.ports[0], "POST", self.warehouse.path("namespaces"), {"namespace": ["probe"]})
        self._ask(self.ports[0], "POST", self._tables, {"name": "kept", "schema": SCHEMA})
        self._ask(self.ports[0], "POST", self._tables, {"name": "calm", "schema": SCHEMA})

    @property
    def _tables(self) -> str:
        return self.warehouse.path("namespaces", "probe", "tables")

    @property
    def kept(self) -> str:
        """The path of the table that it commits to."""
        return f"{self._tables}/kept"

    @property
    def calm(self) -> str:
        """The path of one that it leaves alone."""
        return f"{self._tables}/calm"

    def replicas(self, *, within_s: float) -> None:
        """Returns when each replica has committed, and the other has shown it; raises NotYet after `within_s`."""
        self._until(self._both, within_s)

    def worker(self, *, within_s: float) -> None:
        """Returns when a worker has purged a table that is dropped now; raises NotYet after `within_s`."""
        name = f"purged{next(_numbers)}"
        made = self._ask(self.ports[0], "POST", self._tables, {"name": name, "schema": SCHEMA})
        place = Path(urlsplit(made["metadata"]["location"]).path)
        self._ask(self.ports[0], "DELETE", f"{self._tables}/{name}?purgeRequested=true")

        def gone() -> None:
            if place.exists():
                raise NotYet(f"the files of {name} are still there")

        self._until(gone, within_s)

    def _both(self) -> None:
        for here, there in (self.ports, self.ports[::-1]):
            self._ask(here, "GET", "/health")
            value = str(next(_numbers))
            body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"probe": value}}]}
            self._ask(here, "POST", self.kept, body)
            told = self._ask(there, "GET", self.kept)["metadata"]["properties"]["probe"]
            if told != value:
                raise NotYet(f"port {there} shows {told}, and {value} was committed at port {here}")

    def _until(self, check: Any, within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while True:
            try:
                check()
            except NotYet:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return

    def _ask(self, port: int, method: str, path: str, body: Any = None) -> Any:
        headers = {"authorization": f"Bearer {self.admin.token}"}
        try:
            answer = self._http.request(method, f"http://{HOST}:{port}{path}", headers=headers, json=body)
        except urllib3.exceptions.HTTPError as error:
            raise NotYet(f"{method} {path} at port {port}: {type(error).__name__}") from error
        if answer.status >= 300:
            raise NotYet(f"{method} {path} at port {port}: {answer.status} {answer.data[:200]!r}")
        return answer.json() if answer.data and path != "/health" else None
