"""PyIceberg tries what a data contract forbids; the error names the rule and the column."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException, RESTError, TableAlreadyExistsError

from tests.conformance.contracts import set_on_namespace
from tests.servers.lakewarden_server import DevServer

COLUMNS = pa.schema([("id", pa.int64()), ("place", pa.string())])


@pytest.fixture
def strict(manage: Callable[..., Any], server: DevServer, namespace: str) -> str:
    set_on_namespace(manage, server, namespace, schema_compatibility="full", required_properties=["owner"])
    return namespace


def test_an_incompatible_change_is_refused_and_a_compatible_one_is_made(catalog: RestCatalog, strict: str) -> None:
    table = catalog.create_table((strict, "orders"), COLUMNS, properties={"owner": "sales"})
    with pytest.raises(CommitFailedException) as refused, table.update_schema() as update:
        update.delete_column("place")
    for named in ("schema-compatibility full", "place", strict):
        assert named in str(refused.value)
    table = catalog.load_table((strict, "orders"))
    with table.update_schema() as update:
        update.add_column("more", table.schema().find_field("place").field_type)
    table.append(pa.table({"id": [1], "place": ["here"], "more": ["x"]}))
    with (
        pytest.raises(CommitFailedException, match=r"'owner'.*required-properties"),
        table.transaction() as transaction,
    ):
        transaction.remove_properties("owner")
    assert catalog.load_table((strict, "orders")).scan().to_arrow().num_rows == 1


def test_a_table_that_does_not_keep_the_contract_is_not_created(catalog: RestCatalog, strict: str) -> None:
    with pytest.raises((TableAlreadyExistsError, CommitFailedException, RESTError), match="required-properties"):
        catalog.create_table((strict, "orders"), COLUMNS)
    assert not catalog.table_exists((strict, "orders"))
