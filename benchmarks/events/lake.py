"""A server with a warehouse, whose tables are changed over REST, for `python -m benchmarks.events`."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import urllib3

from benchmarks.failures import BenchmarkError
from standalone.commands import AUDIENCE
from tests.servers.issuer import RunningIssuer, run_issuer
from tests.servers.lakewarden_serve import LakewardenServer, prepared

TABLES: Final = 20
_WRITERS: Final = 4
_TOKEN_USED_FOR_S: Final = 1800
"""Half of its life."""
_SCHEMA: Final = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "long", "required": True}],
}


class Lake:
    def __init__(self, server: LakewardenServer, issuer: RunningIssuer) -> None:
        self.server = server
        self._issuer = issuer
        self._token, self._renewed_at = "", 0.0
        self._http = urllib3.PoolManager(retries=False, timeout=60, maxsize=_WRITERS)
        self._ask("POST", "/management/v1/bootstrap", {"accept-terms-of-use": True})
        profile = {"type": "local", "base-path": str(server.local_root / "lake")}
        made = self._ask("POST", "/management/v1/warehouse", {"warehouse-name": "lake", "storage-profile": profile})
        self._prefix = f"/catalog/v1/{made.get('id') or made['warehouse-id']}"
        self._ask("POST", f"{self._prefix}/namespaces", {"namespace": ["ns"]})
        for number in range(TABLES):
            body = {"name": f"t{number}", "schema": _SCHEMA}
            self._ask("POST", f"{self._prefix}/namespaces/ns/tables", body)
        self.commits = 0

    def commit(self) -> float:
        """Of the next table in turn; returns the seconds that it took."""
        number = self.commits
        self.commits += 1
        return self._commit(number)

    def commit_many(self, count: int) -> None:
        """By several writers, each with tables of its own."""
        first, self.commits = self.commits, self.commits + count

        def write(writer: int) -> None:
            for number in range(first, first + count):
                if number % _WRITERS == writer:
                    self._commit(number)

        with ThreadPoolExecutor(_WRITERS) as writers:
            list(writers.map(write, range(_WRITERS)))

    def _commit(self, number: int) -> float:
        updates = [{"action": "set-properties", "updates": {"number": str(number)}}]
        path = f"{self._prefix}/namespaces/ns/tables/t{number % TABLES}"
        self._fresh_token()
        began = time.perf_counter()
        self._ask("POST", path, {"requirements": [], "updates": updates})
        return time.perf_counter() - began

    def _ask(self, method: str, path: str, body: Any) -> dict[str, Any]:  # noqa: ANN401 JSON
        headers = {"authorization": f"Bearer {self._fresh_token()}", "content-type": "application/json"}
        answer = self._http.request(method, f"{self.server.uri}{path}", body=json.dumps(body), headers=headers)
        if not 200 <= answer.status < 300:  # noqa: PLR2004 HTTP
            raise BenchmarkError(f"{method} {path} was answered {answer.status}: {answer.data[:500]!r}")
        return dict(json.loads(answer.data)) if answer.data else {}

    def _fresh_token(self) -> str:
        if time.monotonic() - self._renewed_at > _TOKEN_USED_FOR_S or not self._token:
            self._token, self._renewed_at = self._issuer.admin_token(), time.monotonic()
        return self._token


@contextmanager
def opened(folder: Path) -> Iterator[Lake]:
    with run_issuer(folder / "issuer") as issuer:
        settings = {
            "LAKEWARDEN__OPENID__OIDC__ISSUER": issuer.url,
            "LAKEWARDEN__OPENID__OIDC__AUDIENCE": AUDIENCE,
        }
        with prepared(settings) as server:
            server.start()
            yield Lake(server, issuer)
