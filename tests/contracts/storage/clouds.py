"""The storages of the clouds that have an emulator, for the suite of all storages."""

import json
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest

from lakewarden import config
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.profiles import parse_profile
from tests.servers import cloud_stub
from tests.servers.azurite import ACCOUNT, AzuriteServer, azurite
from tests.servers.cloud_stub import Answer
from tests.servers.fake_gcs import FakeGcsServer, fake_gcs
from tests.service_accounts import service_account

__all__ = ["azurite", "fake_gcs"]


def _configure(request: pytest.FixtureRequest, cloud: str, **changes: str) -> None:
    """Settings for the rest of the test."""
    whole = config.current()
    section = getattr(whole.storage, cloud).model_copy(update=changes)
    storage = whole.storage.model_copy(update={cloud: section})
    patched = patch.object(config, "current", lambda: whole.model_copy(update={"storage": storage}))
    patched.start()
    request.addfinalizer(patched.stop)


def adls(request: pytest.FixtureRequest) -> dict[str, Any]:
    server: AzuriteServer = request.getfixturevalue("azurite")
    _configure(request, "azure", blob_endpoint=f"http://{server.address}/{{account}}")
    name, other = server.new_container(), server.new_container()

    def at(filesystem: str, **changes: Any) -> StorageProfile:
        fields = {"type": "adls", "account-name": ACCOUNT, "filesystem": filesystem, "key-prefix": "lake"}
        return parse_profile(fields | {"allow-alternative-protocols": True} | changes)

    host = f"{ACCOUNT}.dfs.core.windows.net"
    return {
        "profile": at(name),
        "same_place": at(name, **{"sas-enabled": False}),
        "elsewhere": at(other),
        "nowhere": at("is-not-there"),
        "spellings": (
            f"abfss://{name}@{host}/lake/a b/c",
            f"abfs://{name}@{host}/lake/a b/c",
            f"wasbs://{name}@{ACCOUNT}.blob.core.windows.net/lake/a b/c/",
        ),
        "foreign": (f"abfss://{name}/lake", f"https://{host}/{name}/lake", f"abfss://{name}@{host}/lake/../x", ""),
        "credential": at(name).parse_credential({"credential-type": "shared-access-key", "key": server.key}),
    }


def gcs(request: pytest.FixtureRequest) -> dict[str, Any]:
    server: FakeGcsServer = request.getfixturevalue("fake_gcs")
    running = cloud_stub.start()
    tokens = running.__enter__()
    request.addfinalizer(lambda: running.__exit__(None, None, None))
    tokens.answer("/token", Answer(json.dumps({"access_token": "source", "expires_in": 3600})))
    tokens.answer("/exchange", *(Answer(json.dumps({"access_token": f"for-one-{each}"})) for each in range(8)))
    _configure(
        request,
        "gcs",
        endpoint=server.endpoint,
        token_endpoint=f"{tokens.url}/token",
        exchange_endpoint=f"{tokens.url}/exchange",
    )
    name, other = server.new_bucket(), server.new_bucket()

    def at(bucket: str, **changes: Any) -> StorageProfile:
        return parse_profile({"type": "gcs", "bucket": bucket, "key-prefix": "lake"} | changes)

    return {
        "profile": at(name),
        "same_place": at(name, **{"sts-enabled": False}),
        "elsewhere": at(other),
        "nowhere": at(f"b-{uuid4()}"),
        "spellings": (f"gs://{name}/lake/a b/c", f"GS://{name}/lake/a b/c", f"gs://{name}/lake/a b/c/"),
        "foreign": (f"s3://{name}/lake", f"gs://{name}/lake/../x", f"gs://{name}/it's", "", "lake"),
        "credential": at(name).parse_credential(service_account()),
    }
