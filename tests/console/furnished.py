"""A server with something on every page of the console: tables with history, roles, grants, and what was dropped."""

import datetime as dt
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import requests
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DecimalType, ListType, LongType, NestedField, StringType, StructType, TimestamptzType

from tests.servers.lakewarden_server import DevServer

TIMEOUT_S = 30
ORDERS = Schema(
    NestedField(1, "order_id", LongType(), required=True, doc="Number of the order"),
    NestedField(2, "placed_at", TimestamptzType(), doc="When the customer confirmed"),
    NestedField(
        3,
        "customer",
        StructType(
            NestedField(5, "name", StringType()), NestedField(6, "country", StringType(), doc="ISO 3166-1 alpha-2")
        ),
        doc="Who ordered",
    ),
    NestedField(
        4,
        "lines",
        ListType(
            element_id=7,
            element=StructType(NestedField(8, "sku", StringType()), NestedField(9, "amount", DecimalType(12, 2))),
            element_required=False,
        ),
    ),
    identifier_field_ids=[1],
)
COUNTRIES = ("DE", "FR", "NL", "PT")


@dataclass(frozen=True)
class Furnished:
    """The server, and what tests ask it for; `orders` is a table with six appends, two branches and a tag."""

    server: DevServer
    orders: str

    @property
    def console(self) -> str:
        return self.server.info.console_uri

    @property
    def warehouse(self) -> str:
        return f"{self.console}/warehouses/{self.server.info.warehouse.id}"

    @cached_property
    def administrator(self) -> requests.Session:
        session = requests.Session()
        session.headers["authorization"] = f"Bearer {self.server.token(self.server.info.admin)}"
        return session

    @cached_property
    def catalog(self) -> Catalog:
        return catalog_of(self.server)

    @cached_property
    def first_snapshot(self) -> int:
        """Of `orders`."""
        return self.catalog.load_table("sales.orders").history()[0].snapshot_id

    def role(self, name: str) -> str:
        """The id of a role."""
        return str(next(each["id"] for each in self.manage("GET", "v1/role")["roles"] if each["name"] == name))

    def namespace(self, name: str) -> str:
        """The id of a top-level namespace."""
        info = self.server.info
        listed = self.administrator.get(
            f"{info.catalog_uri}/v1/{info.warehouse.id}/namespaces", params={"returnUuids": "true"}, timeout=TIMEOUT_S
        ).json()
        return str(dict(zip([path[0] for path in listed["namespaces"]], listed["namespace-uuids"], strict=True))[name])

    def manage(self, method: str, path: str, body: Any = None) -> Any:
        """A call of the management API by the administrator."""
        answer = self.administrator.request(
            method, f"{self.server.info.management_uri}/{path}", json=body, timeout=TIMEOUT_S
        )
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None


def catalog_of(server: DevServer) -> Catalog:
    info = server.info
    return load_catalog(
        "lake",
        type="rest",
        uri=info.catalog_uri,
        warehouse=info.warehouse.name,
        scope=info.engine.scope,
        credential=f"{info.engine.client_id}:{info.engine.client_secret}",
        **{"oauth2-server-uri": info.token_endpoint},
    )


def furnish(server: DevServer) -> Furnished:
    catalog = catalog_of(server)
    keep = {"delete-profile": {"type": "soft", "expiration-seconds": 7 * 24 * 3600}}
    Furnished(server, "").manage("POST", f"v1/warehouse/{server.info.warehouse.id}/delete-profile", keep)
    for name in ("sales", "sales.archive", "logistics", "finance"):
        catalog.create_namespace(name)
    orders = fill_orders(catalog)
    small = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()))
    for name in (
        "sales.customers",
        "sales.returns",
        "logistics.shipments",
        "logistics.vehicles",
        "sales.archive.y2024",
    ):
        catalog.create_table(name, small)
    catalog.create_table("sales.old_prices", small)
    catalog.drop_table("sales.old_prices")
    furnished = Furnished(server, str(orders.metadata.table_uuid))
    people_and_roles(furnished)
    return furnished


def fill_orders(catalog: Catalog) -> Table:
    spec = PartitionSpec(PartitionField(6, 1000, IdentityTransform(), "country"))
    table = catalog.create_table("sales.orders", ORDERS, partition_spec=spec)
    for number in range(6):
        table.append(rows(50 * (number + 1), first=1000 * number))
    newest = table.current_snapshot()
    assert newest is not None
    (
        table.manage_snapshots()
        .create_branch(newest.snapshot_id, "audit")
        .create_tag(table.history()[2].snapshot_id, "end-of-week")
        .commit()
    )
    table.append(rows(20, first=9000), branch="audit")
    table.append(rows(30, first=9500))
    table.delete("order_id < 20")
    with table.update_schema() as update:
        update.add_column("channel", StringType(), doc="web, app or shop")
        update.rename_column("placed_at", "ordered_at")
    with table.transaction() as transaction:
        transaction.set_properties({"write.parquet.compression-codec": "zstd", "owner": "dana"})
    return table


def rows(count: int, *, first: int) -> pa.Table:
    begin = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
    content = [
        {
            "order_id": first + number,
            "placed_at": begin + dt.timedelta(hours=7 * number),
            "customer": {"name": f"Customer {first + number}", "country": COUNTRIES[number % len(COUNTRIES)]},
            "lines": [],
        }
        for number in range(count)
    ]
    return pa.Table.from_pylist(content, schema=ORDERS.as_arrow())


def people_and_roles(furnished: Furnished) -> None:
    for subject, name in (("mira", "Mira Koch"), ("joao", "João Reis")):
        body = {"id": f"oidc~{subject}", "name": name, "email": f"{subject}@example.org", "user-type": "human"}
        furnished.manage("POST", "v1/user", body)
    roles = {
        name: furnished.manage("POST", "v1/role", {"name": name, "description": description})["id"]
        for name, description in (
            ("analysts", "Read the tables of sales"),
            ("data engineers", "Write everywhere"),
            ("everybody", "All people of the company"),
        )
    }
    for role, member in (("everybody", "analysts"), ("everybody", "data engineers")):
        furnished.manage("POST", f"v1/role/{roles[role]}/members", {"members": [{"role": roles[member]}]})
    furnished.manage("POST", f"v1/role/{roles['analysts']}/members", {"members": [{"user": "oidc~mira"}]})
    furnished.manage("POST", f"v1/role/{roles['data engineers']}/members", {"members": [{"user": "oidc~joao"}]})
    place = f"v1/warehouse/{furnished.server.info.warehouse.id}/grants"
    writes = [
        {"principal": {"role": roles["analysts"]}, "privilege": "select"},
        {"principal": {"role": roles["data engineers"]}, "privilege": "modify"},
    ]
    furnished.manage("POST", place, {"writes": writes})
