"""Signatures for one directory, compared with those of the Azure SDK of the same version of the service."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest
from azure.storage.filedatalake import UserDelegationKey, generate_directory_sas
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.storage.adls.sas import (
    PERMISSIONS,
    DelegationKey,
    Directory,
    Grant,
    instant,
    signed_by_account,
    signed_by_identity,
)
from lakewarden.storage.client_access import AccessLevel

KEY = b64encode(b"the key of an account").decode()
START = datetime(2026, 11, 22, 12, tzinfo=UTC)

segments = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1).filter(
    lambda part: part not in {".", ".."}
)
directories = st.builds(
    Directory,
    account=st.just("lakehouse"),
    filesystem=st.just("data"),
    path=st.lists(segments, min_size=1, max_size=5).map("/".join),
)
grants = st.builds(
    Grant,
    level=st.sampled_from(AccessLevel),
    start=st.just(START),
    expiry=st.integers(1, 86_400).map(lambda seconds: START + timedelta(seconds=seconds)),
    schemes=st.sampled_from(["https", "https,http"]),
)


def fields(token: str) -> dict[str, list[str]]:
    return parse_qs(token, strict_parsing=True)


def of_the_sdk(directory: Directory, grant: Grant, key: str | UserDelegationKey) -> str:
    return generate_directory_sas(
        directory.account,
        directory.filesystem,
        directory.path,
        key,
        permission=grant.permissions,
        start=grant.start,
        expiry=grant.expiry,
        protocol=grant.schemes,
    )


@given(directories, grants)
def test_a_signature_of_the_account_is_that_of_the_sdk(directory: Directory, grant: Grant) -> None:
    assert fields(signed_by_account(directory, grant, key=KEY)) == fields(of_the_sdk(directory, grant, KEY))


@given(directories, grants)
def test_a_signature_of_an_identity_is_that_of_the_sdk(directory: Directory, grant: Grant) -> None:
    until = instant(START + timedelta(days=2))
    mine = DelegationKey("an-object", "a-tenant", instant(START), until, "b", "2025-01-05", KEY)
    key = UserDelegationKey()
    key.signed_oid, key.signed_tid = mine.object_id, mine.tenant_id
    key.signed_start, key.signed_expiry = mine.start, mine.expiry
    key.signed_service, key.signed_version, key.value = mine.service, mine.version, mine.value
    assert fields(signed_by_identity(directory, grant, key=mine)) == fields(of_the_sdk(directory, grant, key))


def test_a_reader_can_neither_write_nor_delete() -> None:
    assert set(PERMISSIONS[AccessLevel.READ]) == set("rl")
    assert set(PERMISSIONS[AccessLevel.WRITE]) == set("rlacwd")


@pytest.mark.parametrize(("path", "depth"), [("a", 1), ("a/b", 2), ("a/b%2Fc", 2)])
def test_the_depth_of_a_directory_is_signed_with_it(path: str, depth: int) -> None:
    token = signed_by_account(
        Directory("lakehouse", "data", path), Grant(AccessLevel.READ, START, START + timedelta(hours=1)), key=KEY
    )
    assert fields(token)["sdd"] == [str(depth)]
    assert fields(token)["sr"] == ["d"]


def test_no_text_of_a_key_shows_its_value() -> None:
    assert "secret" not in repr(DelegationKey("o", "t", "s", "e", "b", "v", "secret"))
