"""What the tests rely on in the emulators of clouds: a change of versions must not take it away silently."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import generate_container_sas

from tests.servers.azurite import ACCOUNT, AzuriteServer, azurite
from tests.servers.fake_gcs import FakeGcsFailed, FakeGcsServer, fake_gcs

__all__ = ["azurite", "fake_gcs"]


def sas(server: AzuriteServer, container: str, *, permission: str = "rl", lasts_s: int = 3600) -> str:
    return generate_container_sas(
        ACCOUNT, container, server.key, permission=permission, expiry=datetime.now(UTC) + timedelta(seconds=lasts_s)
    )


def test_azurite_refuses_signatures_that_do_not_allow_it(azurite: AzuriteServer) -> None:
    container, other = azurite.new_container(), azurite.new_container()
    for each in (container, other):
        azurite.client(each).upload_blob("a b/é+", b"one")
    reader = azurite.client(container, sas(azurite, container))
    assert reader.download_blob("a b/é+").readall() == b"one"
    with pytest.raises(HttpResponseError, match="ErrorCode:AuthorizationPermissionMismatch"):
        reader.delete_blob("a b/é+")
    for token in (
        sas(azurite, other),
        sas(azurite, container, lasts_s=-60),
        sas(azurite, container)[:-8] + "AAAAAA%3D",
    ):
        with pytest.raises(HttpResponseError, match="ErrorCode:Auth"):
            azurite.client(container, token).download_blob("a b/é+")


def test_azurite_puts_only_where_nothing_is_and_deletes_only_what_is_named(azurite: AzuriteServer) -> None:
    client = azurite.client(azurite.new_container())
    first = client.upload_blob("f", b"one").get_blob_properties().etag
    with pytest.raises(ResourceExistsError):
        client.upload_blob("f", b"two")
    client.upload_blob("f", b"two", overwrite=True)
    with pytest.raises(HttpResponseError, match="condition"):
        client.delete_blob("f", etag=first, match_condition=MatchConditions.IfNotModified)


def test_the_fake_of_gcs_knows_generations(fake_gcs: FakeGcsServer) -> None:
    bucket = fake_gcs.new_bucket()
    upload = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name=a%20b%2Ff"
    generation = json.loads(fake_gcs.call("POST", f"{upload}&ifGenerationMatch=0", "one"))["generation"]
    with pytest.raises(FakeGcsFailed, match="412"):
        fake_gcs.call("POST", f"{upload}&ifGenerationMatch=0", "two")
    path = f"/storage/v1/b/{bucket}/o/{quote('a b/f', safe='')}"
    assert fake_gcs.call("GET", f"{path}?alt=media") == b"one"
    fake_gcs.call("DELETE", f"{path}?ifGenerationMatch={generation}")
    with pytest.raises(FakeGcsFailed, match="404"):
        fake_gcs.call("DELETE", f"{path}?ifGenerationMatch={generation}")
