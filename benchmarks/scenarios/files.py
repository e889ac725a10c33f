"""Access to files on S3: loads with credentials in them, and signatures for engines that have none."""

import json
from dataclasses import dataclass, field

from benchmarks.failures import NotServed
from benchmarks.load.closed_loop import Workload
from benchmarks.load.requests import Endpoint
from benchmarks.metadata import SMALL
from benchmarks.scenarios.fixtures import put_table
from benchmarks.scenarios.interface import Repeated
from benchmarks.scenarios.reads import Read
from benchmarks.target import Target

_CREDENTIALS = "s3.secret-access-key"


@dataclass
class LoadForFiles(Read):
    """`loadTable` as an engine asks that wants `delegation`; `with_keys`: what it must receive then."""

    name: str
    about: str
    delegation: str
    with_keys: bool
    is_native: bool = False
    _path: str = field(default="", init=False)

    def prepare(self, target: Target) -> None:
        if target.store is None:
            raise NotServed("the warehouse is not on S3")
        namespace = target.shared_namespace("files", lambda name: _put(target, name))
        self._path = f"namespaces/{namespace}/tables/files"
        config = target.client.load_for_files(namespace, "files", delegation=self.delegation).get("config", {})
        if (_CREDENTIALS in config) != self.with_keys:
            raise NotServed(f"{self.delegation}: the server answers with {sorted(config)}")

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        header = f"X-Iceberg-Access-Delegation: {self.delegation}"
        return Repeated(endpoint.request("GET", self._path, headers=(header,)))


@dataclass
class Sign(Read):
    """A signature for a request on a data file, asked for by the address that `by` names."""

    name: str
    about: str
    method: str
    by: str
    is_native: bool = False
    _path: str = field(default="", init=False)
    _body: bytes = field(default=b"", init=False)

    def prepare(self, target: Target) -> None:
        store = target.store
        if store is None:
            raise NotServed("the warehouse is not on S3")
        namespace = target.shared_namespace("files", lambda name: _put(target, name))
        metadata = target.client.load_for_files(namespace, "files", delegation="remote-signing")["metadata"]
        location, prefix = str(metadata["location"]), target.client.prefix.rstrip("/")
        paths = {
            "id": f"signer/{prefix}/tabular-id/{metadata['table-uuid']}/v1/aws/s3/sign",
            "location": f"{prefix}/v1/aws/s3/sign",
        }
        self._path = paths[self.by]
        key = location.removeprefix(f"s3://{store.bucket}/")
        uri = f"{store.endpoint}/{store.bucket}/{key}/data/00000-0-8b1f6a5e-3c3f-4a51-9a55-4f5f7d3c9a11-00001.parquet"
        headers = {
            "amz-sdk-request": ["attempt=1; max=4"],
            "user-agent": ["benchmarks"],
            "x-amz-date": ["20260101T000000Z"],
        }
        asked = {"region": store.region, "uri": uri, "method": self.method, "headers": headers}
        self._body = json.dumps(asked).encode()

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        return Repeated(endpoint.request("POST", self._path, body=self._body, in_warehouse=False))


def _put(target: Target, namespace: str) -> None:
    put_table(target, namespace, "files", SMALL)
