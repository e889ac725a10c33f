"""A warehouse on S3 whose files are in memory: what is signed for it needs no server, only the keys of its secret."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from lakewarden import backends
from lakewarden.authz.actions import ProjectAction
from lakewarden.config import StorageConfig
from lakewarden.context import RequestContext
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import Storage
from lakewarden.storage.profiles import PROFILES, parse_profile
from lakewarden.storage.s3.profile import S3Profile
from tenants import access
from tenants.models import Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import warehouses
from tests.contracts.storage.bucket import OBJECTS, BucketStorage
from tests.integration.catalog.lake import Lake
from tests.servers.asgi_client import Answer

STORE = "https://s3.example.org:9000"
REGION = "eu-test-1"
KEY_ID, SECRET = "AKIATESTS", "the-secret-of-the-warehouse"
PROFILE = {
    "type": "s3",
    "bucket": "lake",
    "key-prefix": "wh",
    "region": REGION,
    "endpoint": STORE,
    "sts-enabled": False,
    "flavor": "s3-compat",
    "path-style-access": True,
}


class InMemory(S3Profile):
    def ensure_credential(self, credential: StorageCredential | None, settings: StorageConfig) -> None:
        """Tests set the secret afterwards."""

    def open(self, credential: StorageCredential | None) -> Storage:  # noqa: ARG002 nothing is asked for it
        return _InMemory(self.location, STORE)


class _InMemory(BucketStorage):
    def _place(self, location: str) -> str:
        assert location.startswith("s3://"), location
        return location.rstrip("/")


@contextmanager
def on_s3(context: RequestContext, name: str = "lake", **fields: Any) -> Iterator[Warehouse]:
    with patch.dict(PROFILES, {"s3": InMemory}):
        granted = access.project(context, DEFAULT_PROJECT_ID, ProjectAction.CREATE_WAREHOUSE)
        profile = parse_profile({**PROFILE, **fields})
        made = warehouses.create(granted, name, profile=profile, delete_profile={"type": "hard"})
        keep_secret(made, SECRET)
        yield made
    OBJECTS.clear()


def keep_secret(warehouse: Warehouse, secret: str) -> None:
    values = {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": KEY_ID,
        "secret-access-key": secret,
    }
    Warehouse.objects.filter(id=warehouse.id).update(storage_secret=backends.secrets().put(values))


def url(location: str, name: str = "") -> str:
    """Of a file of a table at a location."""
    return f"{STORE}/{location.removeprefix('s3://')}{name}"


@dataclass(frozen=True)
class Signing:
    """Asks for signatures as one user; `route` is of the table `orders` in `sales`, or as `by_id`, `by_location`."""

    lake: Lake
    route: str
    asked: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def by_name(cls, lake: Lake, name: str = "orders") -> "Signing":
        return cls(lake, lake.table(name, "sign"))

    @classmethod
    def by_id(cls, lake: Lake, uuid: str) -> "Signing":
        return cls(lake, f"/catalog/v1/signer/{lake.warehouse_id}/tabular-id/{uuid}/v1/aws/s3/sign")

    @classmethod
    def by_location(cls, lake: Lake) -> "Signing":
        return cls(lake, lake.path("v1", "aws", "s3", "sign"))

    def ask(self, method: str, uri: str, *, body: str | None = None, **headers: str) -> Answer:
        sent: dict[str, Any] = {"region": REGION, "method": method, "uri": uri, "provider": "s3"}
        sent["headers"] = {name.replace("_", "-"): [value] for name, value in headers.items()}
        if body is not None:
            sent["body"] = body
        return self.lake.client.post(self.route, {**sent, **self.asked})


def deletion(*keys: str) -> str:
    return "<Delete>" + "".join(f"<Object><Key>{key}</Key></Object>" for key in keys) + "</Delete>"
