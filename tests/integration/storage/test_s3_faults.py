"""What users read when a bucket is ill, and that a write whose outcome is unknown is never taken for a failed one."""

from collections.abc import Iterator

import pytest

from lakewarden import config
from lakewarden.storage.interface import FileMissing, FileTaken, Storage, StorageError, StorageUnavailable
from lakewarden.storage.profiles import parse_profile
from tests.servers import sick_store
from tests.servers.sick_store import Illness, SickStore

KEY_ID, SECRET = "AKIDEXAMPLE", "a-secret-that-nobody-may-read"
F = "s3://lake/t/f"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {"RETRY_PAUSE_S": "0.01", "REQUEST_TIMEOUT_S": "0.5", "RETRIES": "2"}.items():
        monkeypatch.setenv(f"{config.PREFIX}STORAGE__{name}", value)
    # the server's own environment is not the warehouse's
    for name in ("AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/of-the-shell")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    config.current.cache_clear()
    yield
    config.current.cache_clear()


@pytest.fixture
def sick() -> Iterator[SickStore]:
    with sick_store.start() as store:
        yield store


@pytest.fixture
def store(sick: SickStore) -> Storage:
    return opened(sick.url)


def opened(url: str) -> Storage:
    profile = parse_profile(
        {
            "type": "s3",
            "bucket": "lake",
            "region": "eu-test-1",
            "endpoint": url,
            "flavor": "s3-compat",
            "sts-enabled": False,
        }
    )
    keys = {"credential-type": "access-key", "access-key-id": KEY_ID, "secret-access-key": SECRET}
    return profile.open(profile.parse_credential(keys))


def test_a_write_that_was_answered_badly_but_happened_succeeds(sick: SickStore, store: Storage) -> None:
    sick.illnesses.append(Illness(status=500, code="InternalError", works=True))
    store.write_new(F, b"mine")
    assert sick.objects == {"/lake/t/f": b"mine"}


def test_a_write_that_found_another_file_after_a_bad_answer_is_refused(sick: SickStore, store: Storage) -> None:
    sick.objects["/lake/t/f"] = b"theirs"
    sick.illnesses.append(Illness())
    with pytest.raises(FileTaken):
        store.write_new(F, b"mine")
    assert sick.objects == {"/lake/t/f": b"theirs"}


def test_a_write_that_is_refused_at_once_is_not_read_back(sick: SickStore, store: Storage) -> None:
    sick.objects["/lake/t/f"] = b"mine"
    with pytest.raises(FileTaken):
        store.write_new(F, b"mine")
    assert [method for method, _ in sick.asked] == ["PUT"]


def test_a_write_that_times_out_but_happened_succeeds(sick: SickStore, store: Storage) -> None:
    sick.illnesses.append(Illness(hangs=True, works=True))
    store.write_new(F, b"mine")
    assert sick.objects == {"/lake/t/f": b"mine"}


def test_a_write_is_tried_again_and_then_given_up(sick: SickStore, store: Storage) -> None:
    sick.chronic = Illness()
    with pytest.raises(StorageUnavailable, match="fewer requests"):
        store.write_new(F, b"mine")
    assert [method for method, _ in sick.asked].count("PUT") == 3


def test_two_writers_at_once_are_told_apart(sick: SickStore, store: Storage) -> None:
    sick.illnesses.append(Illness(status=409, code="ConditionalRequestConflict"))
    store.write_new(F, b"mine")
    assert sick.objects == {"/lake/t/f": b"mine"}


ILLNESSES = {
    "wrong key": (Illness(403, "InvalidAccessKeyId"), "access-key-id"),
    "wrong secret": (Illness(403, "SignatureDoesNotMatch"), "secret-access-key"),
    "wrong region": (
        Illness(400, "AuthorizationHeaderMalformed", message="expecting &#39;eu-west-9&#39;."),
        "check region .'eu-west-9' is expected",
    ),
    "another region": (Illness(301, "PermanentRedirect"), "check region and endpoint"),
    "missing bucket": (Illness(404, "NoSuchBucket"), "bucket does not exist"),
    "clock": (Illness(403, "RequestTimeTooSkewed"), "synchronize"),
    "denied": (Illness(403, "AccessDenied"), "s3:GetObject"),
    "denied without a word": (Illness(403, ""), "s3:GetObject"),
    "key service": (Illness(400, "KMS.DisabledException"), "aws-kms-key-arn"),
    "unknown": (Illness(418, "Teapot"), "418 Teapot"),
}


@pytest.mark.parametrize("name", ILLNESSES)
def test_each_refusal_says_what_to_change_and_no_secret(sick: SickStore, store: Storage, name: str) -> None:
    sick.chronic, expected = ILLNESSES[name]
    for use in (
        lambda: store.write_new(F, b"mine"),
        lambda: store.read(F, limit=10),
        lambda: store.delete(F),
        lambda: store.is_empty("s3://lake/t"),
        store.ensure_there,
    ):
        with pytest.raises(StorageError, match=expected) as caught:
            use()
        assert not isinstance(caught.value, StorageUnavailable | FileMissing)
        assert not any(each in str(caught.value) for each in (KEY_ID, SECRET, "AWS4"))
        assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("illness", "expected"),
    [
        (Illness(429, "TooManyRequests"), "429 TooManyRequests"),
        (Illness(503, "SlowDown"), "fewer requests"),
        (Illness(500, "InternalError"), "500 InternalError"),
        (Illness(hangs=True), "did not answer in time"),
    ],
    ids=["429", "503", "500", "hangs"],
)
def test_a_store_that_is_ill_for_a_while_is_not_a_missing_file(
    sick: SickStore, store: Storage, illness: Illness, expected: str
) -> None:
    sick.chronic = illness
    for use in (lambda: store.read(F, limit=10), lambda: store.is_empty("s3://lake/t")):
        with pytest.raises(StorageUnavailable, match=expected):
            use()


def test_one_bad_answer_is_not_noticed(sick: SickStore, store: Storage) -> None:
    sick.objects["/lake/t/f"] = b"here"
    sick.illnesses.append(Illness(500, "InternalError"))
    assert store.read(F, limit=4) == b"here"


def test_a_store_that_is_not_there_is_named() -> None:
    with pytest.raises(StorageUnavailable, match=r"cannot be reached, .*check the endpoint"):
        opened("http://127.0.0.1:1").read(F, limit=1)
