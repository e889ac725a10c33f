"""Reads that engines repeat: config, loadTable in several sizes, 304, HEAD, and lists."""

from dataclasses import dataclass, field
from functools import partial
from urllib.parse import quote

from benchmarks.failures import NotServed
from benchmarks.load.closed_loop import Workload
from benchmarks.load.requests import GZIP, Endpoint
from benchmarks.metadata import SMALL, Shape
from benchmarks.scenarios.fixtures import put_table, put_tables
from benchmarks.scenarios.interface import NO_CONTENT, Repeated
from benchmarks.target import Target

_TABLE = "subject"
_LISTED = 1000
_PAGE = 100
_PAGES_BEFORE = 5


class Read:
    """What the reads have in common: nothing is left behind."""

    def verdict(self, workload: Workload) -> str | None:  # noqa: ARG002 reads change nothing
        return None


@dataclass
class Config(Read):
    name: str = "config"
    about: str = "GET /v1/config"
    is_native: bool = False
    _warehouse: str = ""

    def prepare(self, target: Target) -> None:
        self._warehouse = quote(target.warehouse, safe="")

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        return Repeated(endpoint.request("GET", f"config?warehouse={self._warehouse}", in_warehouse=False))


@dataclass
class Load(Read):
    """`loadTable`, which is most of what a catalog does."""

    name: str
    about: str
    shape: Shape
    encoding: str = GZIP
    is_native: bool = True
    _path: str = field(default="", init=False)
    _kept: str | None = field(default=None, init=False)

    def prepare(self, target: Target) -> None:
        namespace = target.shared_namespace("load", lambda _: None)
        kept = len(put_table(target, namespace, self.name, self.shape)["metadata"].get("snapshots", []))
        self._kept = None if kept == self.shape.snapshots else f"{kept} of {self.shape.snapshots} snapshots were kept"
        self._path = f"namespaces/{namespace}/tables/{self.name}"

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        return Repeated(endpoint.request("GET", self._path, encoding=self.encoding))

    def verdict(self, workload: Workload) -> str | None:  # noqa: ARG002 reads change nothing
        """What makes the figure another one than that of a server that keeps the whole table."""
        return self._kept


@dataclass
class NotModified(Read):
    name: str = "load-304"
    about: str = "loadTable with If-None-Match of the present state: 304"
    is_native: bool = False
    _path: str = ""
    _etag: str = ""

    def prepare(self, target: Target) -> None:
        namespace = target.new_namespace("etag")
        put_table(target, namespace, _TABLE, SMALL)
        etag = target.client.etag(namespace, _TABLE)
        if etag is None:
            raise NotServed("the server gives no ETag")
        self._path, self._etag = f"namespaces/{namespace}/tables/{_TABLE}", etag

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        request = endpoint.request("GET", self._path, headers=(f"If-None-Match: {self._etag}",))
        return Repeated(request, good=frozenset({304}))


@dataclass
class Head(Read):
    name: str = "head"
    about: str = "HEAD of a table"
    is_native: bool = True
    _path: str = ""

    def prepare(self, target: Target) -> None:
        namespace = target.new_namespace("head")
        put_table(target, namespace, _TABLE, SMALL)
        self._path = f"namespaces/{namespace}/tables/{_TABLE}"

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        return Repeated(endpoint.request("HEAD", self._path), good=NO_CONTENT, is_head=True)


@dataclass
class ListTables(Read):
    """A namespace of 1,000 tables: all names at once, or a page from its middle."""

    name: str
    about: str
    is_paged: bool
    is_native: bool = False
    _path: str = field(default="", init=False)

    def prepare(self, target: Target) -> None:
        namespace = target.shared_namespace("list", partial(put_tables, target, count=_LISTED))
        self._path = f"namespaces/{namespace}/tables"
        if self.is_paged:
            token = ""
            for _ in range(_PAGES_BEFORE):
                page = target.client.tables(namespace, page_size=_PAGE, token=token)
                token = page.get("next-page-token") or ""
                if not token:
                    raise NotServed("the server gives no pages")
            self._path += f"?pageSize={_PAGE}&pageToken={quote(token, safe='')}"

    def workload(self, endpoint: Endpoint, clients: int) -> Workload:  # noqa: ARG002 the same for any number
        return Repeated(endpoint.request("GET", self._path))
