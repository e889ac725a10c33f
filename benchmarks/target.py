"""The server under test: its address, the rights to use it, and its processes where they are on this machine."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.load.requests import Endpoint
from benchmarks.machine.parts import Parts
from benchmarks.rest_client import RestClient, TokenSource
from standalone.ready import ReadyStore, read_ready_file

_FILE = "file://"


@dataclass(slots=True)
class Target:
    """`files`: the warehouse's directory, where it is a local one; `store`: its S3 store, where it is in a bucket.

    `namespaces` are those that the benchmark has created.
    """

    client: RestClient
    warehouse: str
    parts: Parts
    warehouse_id: str | None = None
    files: Path | None = None
    store: ReadyStore | None = None
    namespaces: list[str] = field(default_factory=list)
    shared: dict[str, str] = field(default_factory=dict)
    at_end: list[Callable[[], object]] = field(default_factory=list)

    @classmethod
    def from_ready_file(cls, path: Path) -> "Target":
        """A running `lakewarden dev`."""
        info = read_ready_file(path)
        engine = info.engine
        token = TokenSource(
            info.token_endpoint, client_id=engine.client_id, client_secret=engine.client_secret, scope=engine.scope
        )
        client = RestClient(info.catalog_uri, warehouse=info.warehouse.name, token=token)
        location = info.warehouse.location
        return cls(
            client,
            info.warehouse.name,
            Parts.find(urlsplit(info.catalog_uri).port or 80, below=info.pid),
            warehouse_id=info.warehouse.id,
            store=info.s3,
            files=Path(location.removeprefix(_FILE)) if location.startswith(_FILE) else None,
        )

    def renew(self, path: Path) -> None:
        """Its processes and addresses, after it was started again."""
        fresh = Target.from_ready_file(path)
        self.client, self.parts = fresh.client, fresh.parts

    @classmethod
    def from_address(
        cls, uri: str, *, warehouse: str, token: str | None, server: int | None, postgres: int | None
    ) -> "Target":
        """Any Iceberg REST server; its processes are found by its port, if it runs here, or given."""
        parts = Parts(server or Parts.find(urlsplit(uri).port or 80, below=None).server, postgres)
        return cls(RestClient(uri, warehouse=warehouse, token=lambda: token), warehouse, parts)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint.of(self.client.uri, prefix=self.client.prefix, token=self.client.token())

    def new_namespace(self, purpose: str) -> str:
        """Create a namespace that nobody else uses; `purpose` is part of its name."""
        name = f"bench_{uuid.uuid4().hex[:12]}_{purpose}"
        self.client.create_namespace(name)
        self.namespaces.append(name)
        return name

    def shared_namespace(self, purpose: str, fill: Callable[[str], None]) -> str:
        """The namespace of a purpose that several scenarios share; created and filled for the first."""
        if purpose not in self.shared:
            name = self.new_namespace(purpose)
            fill(name)
            self.shared[purpose] = name
        return self.shared[purpose]

    def clean_up(self) -> None:
        """Drop everything that was created."""
        while self.at_end:
            self.at_end.pop()()
        while self.namespaces:
            self.client.drop_namespace(self.namespaces.pop())
