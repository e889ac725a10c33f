"""Spark tries what a data contract forbids; the error names the rule and the column."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.contracts import set_on_namespace
from tests.conformance.sql import Sql
from tests.servers.lakewarden_server import DevServer


def test_an_incompatible_change_is_refused_and_a_compatible_one_is_made(
    run: Sql, manage: Callable[..., Any], server: DevServer, namespace: str
) -> None:
    run("create table {ns}.orders (id bigint, place string) using iceberg")
    set_on_namespace(manage, server, namespace, schema_compatibility="full")
    with pytest.raises(Exception, match=r"place(.|\n)*schema-compatibility full|schema-compatibility full(.|\n)*place"):
        run("alter table {ns}.orders drop column place")
    run("alter table {ns}.orders add column more string")
    run("insert into {ns}.orders values (1, 'here', 'x')")
    assert run("select * from {ns}.orders") == [(1, "here", "x")]


def test_a_table_that_does_not_keep_the_contract_is_not_created(
    run: Sql, manage: Callable[..., Any], server: DevServer, namespace: str
) -> None:
    # Spark sets `owner` itself
    set_on_namespace(manage, server, namespace, required_properties=["team"])
    with pytest.raises(Exception, match=r"required-properties|already exists"):
        run("create table {ns}.orders (id bigint) using iceberg")
    assert run("show tables in {ns}") == []
    run("create table {ns}.orders (id bigint) using iceberg tblproperties ('team' = 'sales')")
