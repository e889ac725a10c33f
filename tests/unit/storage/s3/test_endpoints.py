"""Whoever may create a warehouse chooses its endpoints, and tries to make the server call others than object stores."""

import socket
from typing import Any

import pytest
from pydantic import ValidationError

from lakewarden.config import AwsConfig, StorageConfig
from lakewarden.errors import InvalidArgument
from lakewarden.storage.request_signing import SignRequest
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
