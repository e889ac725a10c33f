"""Ids of any characters as OpenFGA's, and back; rows of the ledger as tuples."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakewarden.authz.actions import ObjectType
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.openfga.tuples import (
    ANYBODY_IN,
    LONGEST,
    Entry,
    RelationTuple,
    asked_as,
    encoded,
    id_of,
    object_of,
    parents_of,
    user_of,
)
from lakewarden.context import PrincipalId

ALLOWED = re.compile(r"[A-Za-z0-9_.~%-]{1,200}")
identifiers = st.text(max_size=400)


@given(identifiers, identifiers)
@example("", "%-")
@example("a b", "a%20b")
@example("é" * 300, "é" * 301)
def test_two_ids_are_never_written_alike(one: str, other: str) -> None:
    assert (encoded(one) == encoded(other)) == (one == other)


@given(identifiers)
@example("")
@example("*")
@example("role:x#assignee")
@example("\ud800")
def test_an_id_is_written_in_harmless_characters_and_read_again(identifier: str) -> None:
    text = encoded(identifier)
    assert ALLOWED.fullmatch(text)
    assert len(text) <= LONGEST
    assert f"user:{text}" != ANYBODY_IN
    if "sha256-" not in text:
        assert id_of(f"table:{text}") == identifier


def test_a_very_long_id_is_not_read_again() -> None:
    text = encoded("ß" * 300)
    assert text.startswith("%sha256-")
    assert id_of(f"user:{text}") is None


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (Entry("oidc~a b", "select", "table", "t"), ("user:oidc~a%20b", "select_here", "table:t")),
        (Entry("role:r", "ownership", "role", "s"), ("role:r#assignee", "ownership_here", "role:s")),
        (Entry("oidc~a", "assignee", "role", "r"), ("user:oidc~a", "assignee", "role:r")),
        (Entry("role:s", "assignee", "role", "r"), ("role:s#assignee", "assignee", "role:r")),
        (Entry("*", "managed_access", "namespace", "n"), ("user:*", "managed_access", "namespace:n")),
    ],
)
def test_a_row_is_a_tuple_and_the_tuple_is_the_row(entry: Entry, expected: tuple[str, str, str]) -> None:
    made = entry.to_tuple()
    assert made == RelationTuple(*expected)
    assert made is not None
    assert Entry.of_tuple(made) == entry


@pytest.mark.parametrize(
    "entry",
    [
        Entry("oidc~a", "select", "teapot", "t"),
        Entry("oidc~a", "see", "table", "t"),
        Entry("oidc~a", "create", "table", "t"),
        Entry("oidc~a", "parent", "table", "t"),
        Entry("oidc~a", "assignee", "table", "t"),
        Entry("oidc~a", "managed_access", "namespace", "n"),
        Entry("*", "managed_access", "project", "p"),
        Entry("*", "select", "table", "t"),
        Entry("*", "assignee", "role", "r"),
    ],
)
def test_what_the_model_does_not_know_is_no_tuple(entry: Entry, caplog: pytest.LogCaptureFixture) -> None:
    assert entry.to_tuple() is None
    assert "does not know" in caplog.text


def test_nobodys_name_is_everybodys() -> None:
    assert user_of("*") == "user:%2A"


def test_a_chain_tells_what_lies_in_what() -> None:
    chain = [ObjectRef(ObjectType.SERVER, "server"), ObjectRef(ObjectType.PROJECT, "p q")]
    assert parents_of(chain) == [RelationTuple("server:server", "parent", "project:p%20q")]
    assert parents_of(chain[:1]) == []
    assert object_of(chain[1]) == "project:p%20q"


def test_a_user_is_asked_about_with_the_roles_of_his_token() -> None:
    user, roles = asked_as(Principal(PrincipalId("oidc~a"), (PrincipalId("role:r"), PrincipalId("role:r"))))
    assert user == "user:oidc~a"
    assert roles == [RelationTuple("user:oidc~a", "assignee", "role:r")]


def test_a_role_is_asked_about_as_somebody_who_is_only_in_it() -> None:
    user, roles = asked_as(Principal(PrincipalId("role:r"), (PrincipalId("role:s"),)))
    assert user == ANYBODY_IN
    assert [each.object for each in roles] == ["role:r", "role:s"]
