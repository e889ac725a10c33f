"""Namespaces as PyIceberg's client uses them."""

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))


def test_a_namespace_is_created_listed_found_and_dropped(catalog: RestCatalog) -> None:
    catalog.create_namespace("py_short", {"purpose": "a test"})
    assert ("py_short",) in catalog.list_namespaces()
    assert catalog.namespace_exists("py_short")
    assert catalog.load_namespace_properties("py_short")["purpose"] == "a test"
    catalog.drop_namespace("py_short")
    assert not catalog.namespace_exists("py_short")
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties("py_short")
    with pytest.raises(NoSuchNamespaceError):
        catalog.drop_namespace("py_short")


def test_a_second_namespace_of_the_name_is_refused(catalog: RestCatalog, namespace: str) -> None:
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(namespace)
    catalog.create_namespace_if_not_exists(namespace)


def test_nested_namespaces_are_listed_below_their_parent_only(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_namespace((namespace, "inner"))
    catalog.create_namespace((namespace, "inner", "innermost"))
    assert catalog.list_namespaces(namespace) == [(namespace, "inner")]
    assert catalog.list_namespaces((namespace, "inner")) == [(namespace, "inner", "innermost")]
    assert (namespace, "inner") not in catalog.list_namespaces()


def test_properties_are_set_and_removed_and_missing_ones_are_told(catalog: RestCatalog, namespace: str) -> None:
    catalog.update_namespace_properties(namespace, updates={"a": "1", "b": "2"})
    summary = catalog.update_namespace_properties(namespace, removals={"a", "absent"}, updates={"b": "3"})
    assert (summary.removed, summary.updated, summary.missing) == (["a"], ["b"], ["absent"])
    properties = catalog.load_namespace_properties(namespace)
    assert properties["b"] == "3"
    assert "a" not in properties


def test_a_namespace_with_a_table_or_a_child_is_not_dropped(catalog: RestCatalog, namespace: str) -> None:
    catalog.create_table((namespace, "t"), SCHEMA)
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)
    catalog.drop_table((namespace, "t"))
    catalog.create_namespace((namespace, "child"))
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)


@pytest.mark.parametrize("name", ["Käse & Brot", "50%", "a+b", "with space", "日本", "dot.ted", "sla/sh"])
def test_any_name_is_kept_as_it_was_written(catalog: RestCatalog, namespace: str, name: str) -> None:
    catalog.create_namespace((namespace, name))
    assert catalog.list_namespaces(namespace) == [(namespace, name)]
    catalog.create_table((namespace, name, name), SCHEMA)
    assert catalog.list_tables((namespace, name)) == [(namespace, name, name)]
    assert catalog.load_table((namespace, name, name)).schema() == SCHEMA
    assert catalog.table_exists((namespace, name, name))
