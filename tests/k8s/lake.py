"""What the trial's release has for the other tests: a warehouse, and databases."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tests.k8s.load import Told
from tests.k8s.release import Release
from tests.servers.helm import ROOT


@dataclass(frozen=True)
class Lake:
    """A warehouse of `lw` with the namespace `ns`, as its administrator uses it."""

    release: Release
    token: str
    warehouse: str

    @property
    def tables(self) -> str:
        return f"/catalog/v1/{self.warehouse}/namespaces/ns/tables"

    def make_table(self, name: str) -> None:
        schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
        status, answer = self.release.ask("POST", self.tables, {"name": name, "schema": schema}, token=self.token)
        assert status in {200, 409}, answer

    def commit(self, name: str, **properties: str) -> tuple[int, str]:
        """The status, and what an error says."""
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": properties}]}
        status, answer = self.release.ask("POST", f"{self.tables}/{name}", change, token=self.token)
        return status, str(answer.get("error", {}).get("message", ""))

    @contextmanager
    def load(self, *, readers: Sequence[str], writers: Sequence[str] = (), pause_s: float = 0.01) -> Iterator[Told]:
        """A client for each of these tables while it is open, and for a moment before and after.

        Each pauses between its requests.
        """
        command = [*self.release.node.enter, sys.executable, "-m", "tests.k8s.load", self.release.address, self.tables]
        command += [self.token, ",".join(readers), ",".join(writers), str(pause_s)]
        told = Told()
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
            try:
                time.sleep(2)  # it has begun
                yield told
                time.sleep(2)
            finally:
                said, _ = load.communicate(timeout=90)
        vars(told).update(json.loads(said))


@dataclass(frozen=True)
class Databases:
    """In the PostgreSQL of `lw`; each name is a database's, its owner's and a release's."""

    lw: Release

    def make(self, name: str) -> str:
        """An empty database; its address in the cluster."""
        self.run(f"create role {name} login password '{name}'")
        self.run(f"create database {name} owner {name}")
        return f"postgresql://{name}:{name}@{self.lw.full_name}-postgres.default.svc.cluster.local:5432/{name}"

    def run(self, statement: str, *, database: str = "lakewarden") -> str:
        inside = f'psql -h 127.0.0.1 -U lakewarden -d {database} -tA -v ON_ERROR_STOP=1 -c "{statement}"'
        script = f'PGPASSWORD="$POSTGRES_PASSWORD" {inside}'
        return self.lw.kubectl("exec", f"{self.lw.full_name}-postgres-0", "--", "sh", "-c", script)

    def drop(self, name: str) -> None:
        self.run(f"drop database if exists {name} with (force)")
        self.run(f"drop role if exists {name}")
