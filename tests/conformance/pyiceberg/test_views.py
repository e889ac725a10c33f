"""Views as PyIceberg's client sees them; it creates, registers and drops them, but evaluates no SQL."""

import pytest
import urllib3
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchViewError, TableAlreadyExistsError, ViewAlreadyExistsError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view import View
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from tests.servers.lakewarden_server import DevServer

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))
SQL = "SELECT 1 AS id"


def create(catalog: RestCatalog, namespace: str, name: str) -> View:
    version = ViewVersion(
        version_id=1,
        schema_id=0,
        timestamp_ms=1_700_000_000_000,
        summary={"engine-name": "test"},
        representations=[SQLViewRepresentation(type="sql", sql=SQL, dialect="spark")],
        default_namespace=[namespace],
    )
    view: View = catalog.create_view((namespace, name), SCHEMA, version, properties={"comment": "one"})
    return view


def test_a_view_is_created_listed_loaded_and_dropped(catalog: RestCatalog, namespace: str) -> None:
    created = create(catalog, namespace, "v")
    assert catalog.list_views(namespace) == [(namespace, "v")]
    assert catalog.view_exists((namespace, "v"))
    assert catalog.list_tables(namespace) == []
    loaded = catalog.load_view((namespace, "v"))
    assert loaded.metadata == created.metadata
    assert loaded.schema() == SCHEMA
    assert loaded.properties["comment"] == "one"
    representation = loaded.sql_for("spark")
    assert representation is not None
    assert representation.sql == SQL
    catalog.drop_view((namespace, "v"))
    assert not catalog.view_exists((namespace, "v"))
    for call in (catalog.load_view, catalog.drop_view):
        with pytest.raises(NoSuchViewError):
            call((namespace, "v"))


def test_a_dropped_view_is_registered_again_as_it_was(
    catalog: RestCatalog, namespace: str, server: DevServer, token: str
) -> None:
    created = create(catalog, namespace, "v")
    uri = f"{server.info.catalog_uri}/v1/{server.info.warehouse.id}/namespaces/{namespace}/views/v"
    loaded = urllib3.request("GET", uri, headers={"authorization": f"Bearer {token}"}).json()
    catalog.drop_view((namespace, "v"))
    again = catalog.register_view((namespace, "again"), loaded["metadata-location"])
    assert again.metadata == created.metadata


def test_tables_and_views_share_their_names(catalog: RestCatalog, namespace: str) -> None:
    create(catalog, namespace, "v")
    with pytest.raises(ViewAlreadyExistsError):
        create(catalog, namespace, "v")
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table((namespace, "v"), SCHEMA)
