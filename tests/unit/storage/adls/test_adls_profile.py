from typing import Any

import pytest
from pydantic import ValidationError

from lakewarden.config import AzureConfig, StorageConfig
from lakewarden.errors import BadRequest, InvalidArgument
from lakewarden.storage.adls.profile import AdlsProfile
from lakewarden.storage.interface import StorageError

BASE = {"type": "adls", "account-name": "lakehouse", "filesystem": "data"}
SECRET = {"credential-type": "client-credentials", "client-id": "c", "client-secret": "hidden", "tenant-id": "t"}


def profile(**values: Any) -> AdlsProfile:
    return AdlsProfile.model_validate(BASE | {name.replace("_", "-"): value for name, value in values.items()})


def test_the_fields_that_may_be_omitted_are_those_of_the_public_cloud() -> None:
    plain = profile()
    assert plain.location == "abfss://data@lakehouse.dfs.core.windows.net"
    assert plain.authority_host == "https://login.microsoftonline.com"
    assert (plain.sas_enabled, plain.sas_token_validity_seconds) == (True, 3600)
    assert AdlsProfile.model_validate(plain.dump()) == plain


def test_a_prefix_and_a_host_are_a_part_of_the_location() -> None:
    there = profile(key_prefix="/lake/one/", host="DFS.core.usgovcloudapi.net")
    assert there.location == "abfss://data@lakehouse.dfs.core.usgovcloudapi.net/lake/one"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("account-name", "Lake-House"),
        ("account-name", "lakehouse.evil.example"),
        ("filesystem", "da--ta"),
        ("filesystem", "-data"),
        ("filesystem", "a/b"),
        ("host", "evil.example.org"),
        ("host", "dfs.core.windows.net/x"),
        ("host", "dfs.core.windows.net@evil.example"),
        ("key-prefix", "a/../b"),
        ("key-prefix", "a./b"),
        ("sas-token-validity-seconds", 7 * 86_400 + 1),
        ("more", 1),
    ],
)
def test_a_wrong_field_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as error:
        AdlsProfile.model_validate(BASE | {field: value})
    assert error.value.errors()[0]["loc"] == (field,)


@pytest.mark.parametrize(
    "spelling",
    [
        "abfs://data@lakehouse.dfs.core.windows.net/a/b",
        "wasbs://data@lakehouse.blob.core.windows.net/a/b/",
        "wasb://data@Lakehouse.blob.core.windows.net/a/b",
        "abfss://DATA@lakehouse.DFS.core.windows.net/a/b",
        "ABFSS://data@lakehouse.dfs.core.windows.net/a/b",
    ],
)
def test_old_spellings_are_the_same_place_where_they_are_allowed(spelling: str) -> None:
    assert profile(allow_alternative_protocols=True).normal(spelling) == (
        "abfss://data@lakehouse.dfs.core.windows.net/a/b"
    )


@pytest.mark.parametrize(
    "location",
    [
        "abfs://data@lakehouse.dfs.core.windows.net/a",
        "wasbs://data@lakehouse.blob.core.windows.net/a",
        "abfss://lakehouse.dfs.core.windows.net/data/a",
        "abfss://data/a",
        "abfss://data@lakehouse/a",
        "abfss://data@lakehouse.dfs.core.windows.net:443/a",
        "abfss://a@b@lakehouse.dfs.core.windows.net/a",
        "abfss://data@lakehouse.dfs.core.windows.net/a/../b",
        "abfss://data@lakehouse.dfs.core.windows.net/a//b",
        "abfss://data@lakehouse.dfs.core.windows.net/a./b",
        "abfss://data@lakehouse.dfs.core.windows.net/a\\b",
        "https://lakehouse.dfs.core.windows.net/data/a",
        "s3://data/a",
        "",
    ],
)
def test_what_is_not_a_location_of_adls_is_refused(location: str) -> None:
    with pytest.raises(StorageError):
        profile().normal(location)


def test_only_hosts_of_the_operator_receive_keys_and_secrets() -> None:
    settings = StorageConfig()
    profile().ensure_allowed(settings)
    profile(authority_host="login.microsoftonline.com/").ensure_allowed(settings)
    with pytest.raises(InvalidArgument, match=r"host 'dfs.evil.example' is not one of .* storage.azure.hosts"):
        profile(host="dfs.evil.example").ensure_allowed(settings)
    for address in (
        "https://login.evil.example",
        "http://login.microsoftonline.com",
        "https://login.microsoftonline.com.evil",
    ):
        with pytest.raises(InvalidArgument, match="authority-host"):
            profile(authority_host=address).ensure_allowed(settings)


def test_a_storage_without_a_credential_is_refused() -> None:
    with pytest.raises(BadRequest, match="storage-credential is missing"):
        profile().ensure_credential(None, StorageConfig())


def test_the_identity_of_the_server_is_used_only_if_the_operator_allows_it() -> None:
    credential = profile().parse_credential({"type": "az", "credential-type": "azure-system-identity"})
    with pytest.raises(BadRequest, match=r"storage.azure.system_identity"):
        profile().ensure_credential(credential, StorageConfig())
    profile().ensure_credential(credential, StorageConfig(azure=AzureConfig(system_identity=True)))


@pytest.mark.parametrize(
    "value",
    [SECRET, {"credential-type": "shared-access-key", "key": "aGlkZGVu"}, {"credential-type": "azure-system-identity"}],
)
def test_a_credential_is_what_it_was_when_it_is_read_from_the_secret_store(value: dict[str, str]) -> None:
    credential = profile().parse_credential(value)
    assert credential is not None
    assert "hidden" not in repr(credential)
    assert "aGlkZGVu" not in repr(credential)
    assert profile().parse_credential(credential.dump()) == credential


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (SECRET | {"tenant-id": "../../evil"}, "tenant-id: is not a valid id"),
        (SECRET | {"client-id": ""}, "client-id"),
        (SECRET | {"client-secret": ""}, "client-secret"),
        ({"credential-type": "shared-access-key", "key": "hidden!"}, "key: is not a valid key .* not Base64"),
        ({"credential-type": "access-key"}, "credential-type is one of 'azure-system-identity', 'client-credentials'"),
        (SECRET | {"type": "s3"}, "type is 'az'"),
    ],
)
def test_a_wrong_credential_is_refused_with_its_field_and_without_its_secret(value: Any, words: str) -> None:
    with pytest.raises(BadRequest, match=words) as error:
        profile().parse_credential(value)
    assert "hidden" not in str(error.value)
    assert "hidden" not in repr(error.value.__cause__)
