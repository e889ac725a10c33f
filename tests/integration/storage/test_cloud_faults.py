"""Clouds that refuse, hang, or answer badly: what users read, and what becomes of files. The stores are stubs."""

import json
from typing import Any
from unittest.mock import patch

import pytest

from lakewarden import config
from lakewarden.storage.adls.profile import AdlsProfile
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientRoutes, Delegation
from lakewarden.storage.gcs.profile import GcsProfile
from lakewarden.storage.interface import AccessDenied, FileMissing, FileTaken, Storage, StorageError, StorageUnavailable
from lakewarden.storage.removal import Found
from tests.servers.cloud_stub import Answer, CloudStub
from tests.service_accounts import service_account

KEY = "aGlkZGVuIGtleQ=="
ROUTES = ClientRoutes("http://catalog", "v1/credentials", "v1/sign")


def opened(profile: AdlsProfile | GcsProfile, credential: dict[str, Any], **storage: Any) -> Storage:
    whole = config.current()
    fast = {"retries": 1, "retry_pause_s": 0.01, "request_timeout_s": 0.5}
    settings = whole.storage.model_copy(update=fast | storage)
    with patch.object(config, "current", lambda: whole.model_copy(update={"storage": settings})):
        return profile.open(profile.parse_credential(credential))


@pytest.fixture
def adls(cloud: CloudStub) -> Storage:
    profile = AdlsProfile.model_validate(
        {"type": "adls", "account-name": "lakehouse", "filesystem": "data", "key-prefix": "wh"}
    )
    azure = config.AzureConfig(blob_endpoint=f"{cloud.url}/{{account}}")
    return opened(profile, {"credential-type": "shared-access-key", "key": KEY}, azure=azure)


@pytest.fixture
def gcs(cloud: CloudStub) -> Storage:
    cloud.answer("/token", Answer(json.dumps({"access_token": "a-token", "expires_in": 3600})))
    settings = config.GcsConfig(
        endpoint=cloud.url, token_endpoint=f"{cloud.url}/token", exchange_endpoint=f"{cloud.url}/exchange"
    )
    return opened(
        GcsProfile.model_validate({"type": "gcs", "bucket": "lake", "key-prefix": "wh"}),
        service_account(),
        gcs=settings,
    )


ADLS = "abfss://data@lakehouse.dfs.core.windows.net/wh"
BLOB, FILES = "/lakehouse/data/wh%2Ff", "/lakehouse/data"
GCS = "gs://lake/wh"


def refusal(status: int, code: str) -> Answer:
    return Answer(f"<Error><Code>{code}</Code><Message>{KEY}</Message></Error>", status, {"x-ms-error-code": code})


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (refusal(403, "AuthenticationFailed"), StorageError, r"does not accept the credential.*AuthenticationFailed"),
        (refusal(403, "AuthorizationPermissionMismatch"), AccessDenied, "Storage Blob Data Contributor"),
        (refusal(404, "ContainerNotFound"), StorageError, "the filesystem does not exist"),
        (refusal(404, "BlobNotFound"), FileMissing, "No file at"),
        (refusal(503, "ServerBusy"), StorageUnavailable, "503 ServerBusy"),
        (refusal(429, "TooManyRequests"), StorageUnavailable, "429"),
    ],
)
def test_a_refused_read_of_azure_says_why_and_shows_no_key(
    cloud: CloudStub, adls: Storage, answer: Answer, error: type[StorageError], words: str
) -> None:
    cloud.answer(BLOB, answer)
    with pytest.raises(error, match=words) as raised:
        adls.read(f"{ADLS}/f", limit=10)
    assert type(raised.value) is error
    assert KEY not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("code", ["AuthenticationFailed", "ContainerNotFound"])
def test_a_refused_list_of_azure_says_why(cloud: CloudStub, adls: Storage, code: str) -> None:
    cloud.answer(FILES, refusal(403 if code == "AuthenticationFailed" else 404, code))
    for use in (adls.ensure_there, lambda: adls.is_empty(f"{ADLS}/t")):
        with pytest.raises(StorageError, match=code) as raised:
            use()
        assert KEY not in str(raised.value)


def test_a_store_that_hangs_is_not_waited_for(cloud: CloudStub, adls: Storage) -> None:
    cloud.silent.set()
    for use in (lambda: adls.read(f"{ADLS}/f", limit=1), lambda: adls.is_empty(f"{ADLS}/t")):
        with pytest.raises(StorageUnavailable, match="did not answer in time"):
            use()


def blob(name: str, *, etag: str = "0x1", is_folder: bool = False) -> str:
    kind = "<ResourceType>directory</ResourceType>" if is_folder else "<ResourceType>file</ResourceType>"
    return (
        f"<Blob><Name>{name}</Name><Properties><Last-Modified>Sun, 22 Nov 2026 12:00:00 GMT</Last-Modified>"
        f"<Etag>{etag}</Etag><Content-Length>4</Content-Length>{kind}</Properties></Blob>"
    )


def page(*blobs: str, following: str = "") -> Answer:
    return Answer(
        f"\ufeff<?xml version='1.0' encoding='utf-8'?><EnumerationResults><Blobs>{''.join(blobs)}</Blobs>"
        f"<NextMarker>{following}</NextMarker></EnumerationResults>"
    )


def test_folders_go_after_their_files_and_inner_ones_first(cloud: CloudStub, adls: Storage) -> None:
    folders = [blob(name, is_folder=True) for name in ("wh/t/data", "wh/t/data/a", "wh/t/data/a/b", "wh/t/metadata")]
    files = [blob("wh/t/data/a/b/f"), blob("wh/t/metadata/f")]
    cloud.answer(FILES, page(*folders[:3], files[0], following="more"), page(folders[3], files[1]))
    found = list(adls.survey(f"{ADLS}/t", within=ADLS))
    assert [each.path for each in found] == ["t/data/a/b/f", "t/metadata/f"]
    assert [asked.query.get("marker") for asked in cloud.asked] == [None, "more"]
    assert {asked.query["prefix"] for asked in cloud.asked} == {"wh/t/"}

    cloud.answer(FILES, page(*folders))
    cloud.answer("/lakehouse/data/wh%2Ft", Answer("", headers={"x-ms-meta-hdi_isfolder": "true", "ETag": '"0x9"'}))
    found = list(adls.survey(f"{ADLS}/t", within=ADLS))
    assert [each.path for each in found] == ["t/data/a/b", "t/data/a", "t/data", "t/metadata", "t"]
    assert all(each.is_folder for each in found)


def test_what_has_changed_since_it_was_found_stays(cloud: CloudStub, adls: Storage) -> None:
    answers = {
        "gone": Answer("", 202),
        "missing": refusal(404, "BlobNotFound"),
        "changed": refusal(412, "ConditionNotMet"),
        "filled": refusal(409, "DirectoryIsNotEmpty"),
    }
    found = [Found(f"t/{name}", 4, '"0x1"', is_folder=name == "filled") for name in answers]
    for name, answer in answers.items():
        cloud.answer(f"/lakehouse/data/wh%2Ft%2F{name}", answer)
    # there is still something where the condition was not met
    cloud.answers["/lakehouse/data/wh%2Ft%2Fchanged"].append(Answer(""))
    outcome = adls.remove(found, within=ADLS, at_once=2)
    assert outcome.error is None
    assert [each.path for each in outcome.gone] == ["t/gone"]
    assert [each.path for each in outcome.missing] == ["t/missing"]
    assert {asked.headers["If-Match"] for asked in cloud.asked if asked.method == "DELETE"} == {'"0x1"'}


def test_a_removal_that_is_refused_ends_with_the_reason(cloud: CloudStub, adls: Storage) -> None:
    cloud.answer("/lakehouse/data/wh%2Ft%2Ff", refusal(403, "AuthorizationPermissionMismatch"))
    outcome = adls.remove([Found("t/f", 4, '"0x1"')], within=ADLS, at_once=1)
    assert (outcome.gone, outcome.missing) == ([], [])
    assert "AuthorizationPermissionMismatch" in str(outcome.error)


UPLOAD = "/upload/storage/v1/b/lake/o"


def said(status: int, reason: str) -> Answer:
    return Answer(json.dumps({"error": {"code": status, "message": "a-token", "errors": [{"reason": reason}]}}), status)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (said(401, "authError"), StorageError, "does not accept the token of the service account"),
        (said(403, "forbidden"), StorageError, "Storage Object User"),
        (said(412, "conditionNotMet"), FileTaken, "already exists"),
        (said(404, "notFound"), StorageError, "No file at|does not exist"),
        (said(503, "backendError"), StorageUnavailable, "503 backendError"),
        (said(429, "rateLimitExceeded"), StorageUnavailable, "429 rateLimitExceeded"),
    ],
)
def test_a_refused_write_of_google_says_why_and_shows_no_token(
    cloud: CloudStub, gcs: Storage, answer: Answer, error: type[StorageError], words: str
) -> None:
    cloud.answer(UPLOAD, answer)
    with pytest.raises(error, match=words) as raised:
        gcs.write_new(f"{GCS}/f", b"content")
    assert "a-token" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_a_write_whose_answer_was_lost_is_known_by_its_content(cloud: CloudStub, gcs: Storage) -> None:
    cloud.answer(UPLOAD, said(503, "backendError"), said(412, "conditionNotMet"))
    cloud.answer("/storage/v1/b/lake/o/wh%2Ff", Answer("content"))
    gcs.write_new(f"{GCS}/f", b"content")
    cloud.answer(UPLOAD, said(503, "backendError"), said(412, "conditionNotMet"))
    with pytest.raises(FileTaken):
        gcs.write_new(f"{GCS}/f", b"others'")


def test_a_write_of_google_is_conditional_and_names_the_key_exactly(cloud: CloudStub, gcs: Storage) -> None:
    cloud.answer(UPLOAD, Answer("{}"))
    gcs.write_new(f"{GCS}/a b/é%2F+", b"content")
    asked = cloud.asked[-1]
    assert asked.query == {"uploadType": "media", "name": "wh/a b/é%2F+", "ifGenerationMatch": "0"}
    assert (asked.body, asked.headers["Authorization"]) == ("content", "Bearer a-token")


def test_a_removal_of_google_names_the_generation(cloud: CloudStub, gcs: Storage) -> None:
    objects = [
        {"name": f"wh/t/{name}", "size": "4", "generation": "7", "updated": "2026-11-22T12:00:00Z"}
        for name in ("f", "g")
    ]
    cloud.answer("/storage/v1/b/lake/o", Answer(json.dumps({"items": objects})))
    found = list(gcs.survey(f"{GCS}/t", within=GCS))
    assert [each.path for each in found] == ["t/f", "t/g"]
    for name in "fg":
        cloud.answer(
            f"/storage/v1/b/lake/o/wh%2Ft%2F{name}", Answer("", 204) if name == "f" else said(412, "conditionNotMet")
        )
    outcome = gcs.remove(found, within=GCS, at_once=1)
    assert [each.path for each in outcome.gone] == ["t/f"]
    assert {asked.query["ifGenerationMatch"] for asked in cloud.asked if asked.method == "DELETE"} == {"7"}


@pytest.mark.parametrize("store", ["adls", "gcs"])
def test_engines_with_keys_of_their_own_receive_nothing_secret(
    request: pytest.FixtureRequest, cloud: CloudStub, store: str
) -> None:
    storage: Storage = request.getfixturevalue(store)
    base = ADLS if store == "adls" else GCS
    asked = AccessRequest(f"{base}/t", AccessLevel.READ, frozenset({Delegation.CLIENT_MANAGED}), ROUTES)
    assert storage.client_access(asked).credentials == {}
    assert cloud.asked == []


def test_one_exchange_serves_all_who_load_a_table_with_one_level(cloud: CloudStub, gcs: Storage) -> None:
    answers = (Answer(json.dumps({"access_token": f"t{number}"})) for number in range(9))
    cloud.answer("/exchange", *answers)
    asked = [
        AccessRequest(f"{GCS}/{table}", level, frozenset(), ROUTES)
        for table in ("a", "b", "a")
        for level in (AccessLevel.READ, AccessLevel.READ, AccessLevel.WRITE)
    ]
    told = [gcs.client_access(each) for each in asked]
    assert [each.credentials["gcs.oauth2.token"] for each in told] == [
        *("t0", "t0", "t1"),
        *("t2", "t2", "t3"),
        *("t0", "t0", "t1"),
    ]
    assert all(each.fresh_until and each.expires_at and each.fresh_until < each.expires_at for each in told)
