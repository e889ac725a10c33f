"""Whoever may create a warehouse chooses its endpoints, and tries to make the server call others than object stores."""

import socket
from typing import Any

import pytest
from pydantic import ValidationError

from lakewarden.config import AwsConfig, StorageConfig
from lakewarden.errors import InvalidArgument
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientRoutes
from lakewarden.storage.interface import StorageError
from lakewarden.storage.request_signing import SignRequest
from lakewarden.storage.s3 import endpoints
from lakewarden.storage.s3.request_signer import S3RequestSigner
from lakewarden.storage.s3.server_keys import own_keys
from tests.unit.storage.s3.profiles import KEY, profile

FIELDS = ("endpoint", "client-endpoint", "sts-endpoint")


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The addresses of names; others are not known. Numbers are read by the system."""
    known = {"localhost": "127.0.0.1", "store.example": "192.0.2.1", "trap.example": "169.254.169.254"}
    of_the_system = socket.getaddrinfo

    def look_up(host: str, port: int | None, **options: Any) -> object:
        return of_the_system(known.get(host, host), port, flags=socket.AI_NUMERICHOST, **options)

    monkeypatch.setattr("lakewarden.storage.s3.endpoints.socket.getaddrinfo", look_up)
    return known


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(
    "value",
    [
        "http://store.example:99999",
        "http://store.example:0",
        "http://store.example:port",
        "http://sto\nre.example",
        "http://store.example\\.evil.example",
        "http://:password@store.example",
        "http://@store.example",
        "http://store.example/a/../b",
        "http://store.example/%2e%2e",
        "http://store.example ",
        "http://",
        "http://[::1",
    ],
)
def test_an_endpoint_that_two_libraries_may_read_differently_is_refused(field: str, value: str) -> None:
    with pytest.raises(ValidationError):
        profile(flavor="s3-compat", **{field: value})


@pytest.mark.parametrize("value", ["http://127.0.0.1:9000", "https://[::1]:9000/s3", "https://store.example/"])
def test_stores_at_home_are_valid_endpoints(value: str) -> None:
    profile(flavor="s3-compat", endpoint=value, sts_endpoint=value).ensure_allowed(StorageConfig())


@pytest.mark.parametrize("field", ["endpoint", "sts-endpoint"])
@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "100.100.100.200",
        "168.63.129.16",
        "trap.example",
    ],
)
def test_the_services_of_a_machine_are_never_endpoints(field: str, host: str) -> None:
    asked = profile(flavor="s3-compat", **{field: f"http://{host}/latest"})
    with pytest.raises(InvalidArgument, match=f"^{field} .* link-local"):
        asked.ensure_allowed(StorageConfig())


def test_an_operator_may_name_the_only_endpoints() -> None:
    settings = StorageConfig(aws=AwsConfig(endpoints=("https://store.example/", "http://169.254.1.1:9000")))
    profile(flavor="s3-compat", endpoint="https://store.example").ensure_allowed(settings)
    profile(flavor="s3-compat", endpoint="http://169.254.1.1:9000").ensure_allowed(settings)
    profile().ensure_allowed(settings)
    for other in ("http://store.example", "https://store.example:444", "https://store.example/consul"):
        with pytest.raises(InvalidArgument, match=r"sts-endpoint .*storage\.aws\.endpoints"):
            profile(flavor="s3-compat", sts_endpoint=other).ensure_allowed(settings)


@pytest.mark.parametrize(
    ("fields", "host", "is_guarded"),
    [
        ({}, "https://lake.s3.eu-west-1.amazonaws.com", False),
        ({"endpoint": "https://s3.eu-west-1.amazonaws.com"}, "https://lake.s3.eu-west-1.amazonaws.com", False),
        ({"endpoint": "http://store.example:9000"}, "http://lake.store.example:9000", True),
        ({"client_endpoint": "https://s3.amazonaws.com.example"}, "https://lake.s3.amazonaws.com.example", True),
    ],
)
def test_a_signed_write_is_guarded_wherever_the_store_is_not_awss_own_though_the_profile_says_so(
    fields: dict[str, str], host: str, *, is_guarded: bool
) -> None:
    of = profile(**fields)
    signer = S3RequestSigner(of, own_keys(of, KEY))
    signed = signer.sign(signer.read(SignRequest("eu-west-1", "PUT", f"{host}/wh/t/file", {})))
    assert ("x-amz-copy-source-if-match" in signed.headers) == is_guarded


def test_a_name_that_leads_elsewhere_by_now_is_refused_before_any_request(
    names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = profile(flavor="s3-compat", endpoint="http://store.example", sts_enabled=True)
    found.ensure_allowed(StorageConfig())
    store = found.open(KEY)
    names["store.example"] = "169.254.169.254"
    asked = AccessRequest(f"{found.location}/t", AccessLevel.READ, frozenset(), ClientRoutes("", "", ""))
    for use in (
        lambda: store.read(f"{found.location}/f", limit=1),
        lambda: store.write_new(f"{found.location}/f", b""),
        lambda: store.is_empty(found.location),
        lambda: list(store.survey(f"{found.location}/t", within=found.location)),
        lambda: store.client_access(asked),
    ):
        with pytest.raises(StorageError, match=r"endpoint 'http://store\.example' is not allowed: link-local"):
            use()


def test_names_are_looked_up_again_after_some_seconds(names: dict[str, str]) -> None:
    now = [0.0]
    used = endpoints.EndpointsInUse({"endpoint": "http://store.example"}, (), clock=lambda: now[0])
    used.ensure_allowed()
    names["store.example"] = "169.254.169.254"
    used.ensure_allowed()
    now[0] += endpoints.LOOK_AGAIN_S
    with pytest.raises(StorageError):
        used.ensure_allowed()
    names["store.example"] = "192.0.2.1"
    used.ensure_allowed()


def test_endpoints_that_the_operator_has_named_may_lead_anywhere(names: dict[str, str]) -> None:
    endpoints.EndpointsInUse({"endpoint": "http://trap.example"}, ["http://trap.example"]).ensure_allowed()


@pytest.mark.parametrize(
    ("fields", "token_service"),
    [
        ({"flavor": "aws"}, "https://sts.eu-central-1.amazonaws.com"),
        (
            {"flavor": "aws", "endpoint": "https://s3.eu-central-1.amazonaws.com"},
            "https://sts.eu-central-1.amazonaws.com",
        ),
        (
            {"flavor": "aws", "endpoint": "https://bucket.vpce-1.s3.eu-central-1.vpce.amazonaws.com"},
            "https://sts.eu-central-1.amazonaws.com",
        ),
        ({"flavor": "aws", "endpoint": "https://store.example"}, "https://store.example"),
        ({"flavor": "s3-compat", "endpoint": "https://store.example"}, "https://store.example"),
        (
            {
                "flavor": "aws",
                "endpoint": "https://s3.eu-central-1.amazonaws.com",
                "sts_endpoint": "https://sts.example",
            },
            "https://sts.example",
        ),
    ],
)
def test_the_token_service_of_aws_is_not_where_s3_is(fields: dict[str, str], token_service: str) -> None:
    assert profile(region="eu-central-1", **fields).sts_url == token_service
