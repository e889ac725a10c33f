"""Which S3 profiles and credentials go together, where their endpoints are, and what engines are told."""

from typing import Any

import pytest

from lakewarden.config import AwsConfig, StorageConfig
from lakewarden.errors import BadRequest
from lakewarden.storage.profiles import parse_profile
from lakewarden.storage.s3.client_settings import client_settings
from lakewarden.storage.s3.listing import before, common
from lakewarden.storage.s3.profile import S3Profile

ROLE = "arn:aws:iam::123456789012:role/lake"
AWS = {"type": "s3", "bucket": "lake", "region": "eu-central-1", "sts-enabled": True, "sts-role-arn": ROLE}
OTHER = {
    "type": "s3",
    "bucket": "lake",
    "region": "auto",
    "flavor": "s3-compat",
    "sts-enabled": True,
    "endpoint": "https://s3.example.org",
}
IDENTITY = {"credential-type": "aws-system-identity", "external-id": "id"}
R2 = {
    "credential-type": "cloudflare-r2",
    "account-id": "a",
    "access-key-id": "k",
    "secret-access-key": "s",
    "token": "t",
}


def profile(fields: dict[str, Any]) -> S3Profile:
    found = parse_profile(fields)
    assert isinstance(found, S3Profile)
    return found


def test_sts_of_aws_needs_a_role() -> None:
    without = {name: value for name, value in AWS.items() if name != "sts-role-arn"}
    with pytest.raises(BadRequest, match="profile: sts-enabled: AWS issues credentials for a role only"):
        profile(without)
    assert profile(without | {"assume-role-arn": ROLE}).assume_role_arn == ROLE
    assert profile(without | {"sts-enabled": False}).sts_role_arn is None
    assert profile(OTHER).sts_role_arn is None


@pytest.mark.parametrize(
    ("fields", "path_style", "s3_url", "sts_url"),
    [
        (AWS, False, "https://s3.eu-central-1.amazonaws.com", "https://sts.eu-central-1.amazonaws.com"),
        (AWS | {"bucket": "a.b"}, True, "https://s3.eu-central-1.amazonaws.com", None),
        (AWS | {"region": "cn-north-1"}, False, "https://s3.cn-north-1.amazonaws.com.cn", None),
        (OTHER, True, "https://s3.example.org", "https://s3.example.org"),
        (OTHER | {"path-style-access": False}, False, "https://s3.example.org", None),
        (OTHER | {"sts-endpoint": "https://sts.example.org/"}, True, None, "https://sts.example.org"),
    ],
)
def test_endpoints_follow_from_the_profile(
    fields: dict[str, Any], path_style: object, s3_url: str | None, sts_url: str | None
) -> None:
    found = profile(fields)
    assert found.uses_path_style is path_style
    assert s3_url in {None, found.s3_url}
    assert sts_url in {None, found.sts_url}


IDENTITY_RULES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str | None]] = [
    ({}, {}, {}, "switched off"),
    ({"system_identity": True}, {}, {}, "assume-role-arn: it is needed"),
    ({"system_identity": True}, {"assume-role-arn": ROLE}, {}, None),
    ({"system_identity": True}, {"assume-role-arn": ROLE}, {"external-id": None}, "external-id: it is needed"),
    ({"system_identity": True, "system_identity_needs_role": False}, {}, {}, None),
    (
        {"system_identity": True, "system_identity_needs_external_id": False},
        {"assume-role-arn": ROLE},
        {"external-id": None},
        None,
    ),
]


@pytest.mark.parametrize(("settings", "fields", "changes", "refusal"), IDENTITY_RULES)
def test_the_identity_of_the_server_is_for_those_whom_the_operator_allows(
    settings: dict[str, Any], fields: dict[str, Any], changes: dict[str, Any], refusal: str | None
) -> None:
    used = profile(AWS | fields)
    credential = used.parse_credential(IDENTITY | changes)
    allowed = StorageConfig(aws=AwsConfig(**settings))
    if refusal is None:
        used.ensure_credential(credential, allowed)
    else:
        with pytest.raises(BadRequest, match=refusal):
            used.ensure_credential(credential, allowed)


@pytest.mark.parametrize(
    "changes", [{}, {"sts-enabled": False}, {"endpoint": None}, {"flavor": "aws", "sts-role-arn": ROLE}]
)
def test_r2_needs_its_endpoint_and_its_token_service(changes: dict[str, Any]) -> None:
    used = profile(OTHER | changes)
    credential = used.parse_credential(R2)
    if not changes:
        used.ensure_credential(credential, StorageConfig())
    else:
        with pytest.raises(BadRequest, match="'cloudflare-r2' needs"):
            used.ensure_credential(credential, StorageConfig())


def test_a_bucket_needs_a_credential() -> None:
    with pytest.raises(BadRequest, match="storage-credential is missing"):
        profile(AWS).ensure_credential(None, StorageConfig())


def test_engines_are_told_where_the_bucket_is_and_no_secret() -> None:
    found = client_settings(
        profile(OTHER | {"client-endpoint": "https://outside.example.org", "aws-kms-key-arn": "key"})
    )
    assert found == {
        "s3.region": "auto",
        "client.region": "auto",
        "region": "auto",
        "s3.endpoint": "https://outside.example.org",
        "s3.path-style-access": "true",
        "s3.delete-enabled": "false",
        "s3.sse.type": "kms",
        "s3.sse.key": "key",
    }
    assert "s3.delete-enabled" not in client_settings(profile(OTHER | {"push-s3-delete-disabled": False}))


@pytest.mark.parametrize("key", ["a/b", "a/é", "a/ ", "a/!", "\U0001f600", "t/0"])
def test_the_key_before_another_sorts_before_it(key: str) -> None:
    assert before(key).encode() < key.encode()


@pytest.mark.parametrize(
    ("one", "other", "start"), [("a/b", "a/c", "a/"), ("a", "ab", "a"), ("a", "a", "a"), ("a", "b", "")]
)
def test_what_two_keys_start_with(one: str, other: str, start: str) -> None:
    assert common(one, other) == start
