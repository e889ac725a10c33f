"""The keys with which the server itself reaches a bucket: sessions of a role, encryption, and what no message shows."""

from datetime import UTC, datetime, timedelta

import pytest

from lakewarden.config import StorageConfig
from lakewarden.storage.interface import StorageError, StorageUnavailable
from lakewarden.storage.s3.credentials import AccessKey
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.server_keys import server_keys
from standalone.s3.programs import Keys
from tests.contracts.storage.s3_warehouse import described
from tests.servers.minio import KMS_KEY, MinioServer, minio

__all__ = ["minio"]

ROLE = {"assume-role-arn": "arn:aws:iam::123456789012:role/lake", "sts-session-tags": {"team": "a"}}


def test_the_server_assumes_the_role_of_the_profile(minio: MinioServer) -> None:
    bucket = minio.new_bucket()
    owner = minio.new_owner(bucket)
    profile, credential = described(minio, bucket, owner, **ROLE)
    store, file = profile.open(credential), f"{profile.location}/t/f"
    store.write_new(file, b"rows")
    assert store.read(file, limit=4) == b"rows"
    assert not store.is_empty(f"{profile.location}/t")
    # MinIO ends the sessions of a user with the user
    minio.admin().user_remove(owner.access_key_id)
    with pytest.raises(StorageError, match=r"session token|access key"):
        store.read(file, limit=4)


def test_a_session_is_renewed_before_it_ends(minio: MinioServer, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = minio.new_bucket()
    profile, credential = described(minio, bucket, minio.new_owner(bucket), **ROLE)
    assert isinstance(profile, S3Profile)
    assert isinstance(credential, AccessKey)
    keys = server_keys(profile, credential, StorageConfig())
    first = keys.for_signing().access_key_id
    keys.ensure_there()
    assert keys.for_signing().access_key_id == first
    later = datetime.now(UTC) + timedelta(minutes=50)
    monkeypatch.setattr("botocore.credentials._local_now", lambda: later)
    monkeypatch.setattr(keys._credentials, "_time_fetcher", lambda: later)
    keys.ensure_there()
    assert keys.for_signing().access_key_id != first


def test_a_role_that_cannot_be_assumed_is_named(minio: MinioServer) -> None:
    wrong = Keys(minio.root.access_key_id, "not-the-secret-of-anybody")
    profile, credential = described(minio, minio.new_bucket(), wrong, **ROLE)
    with pytest.raises(StorageError, match="refused the role arn:aws:iam::123456789012:role/lake") as caught:
        profile.open(credential).read(f"{profile.location}/t/f", limit=1)
    assert "not-the-secret" not in str(caught.value)


def test_a_token_service_that_is_not_there_is_no_refusal(minio: MinioServer) -> None:
    bucket = minio.new_bucket()
    profile, credential = described(minio, bucket, minio.root, **ROLE, **{"sts-endpoint": "http://127.0.0.1:1"})
    with pytest.raises(StorageUnavailable, match="There are no keys for the role"):
        profile.open(credential).read(f"{profile.location}/t/f", limit=1)


def test_new_files_are_encrypted_with_the_key_of_the_profile(minio: MinioServer) -> None:
    bucket = minio.new_bucket()
    profile, credential = described(minio, bucket, minio.new_owner(bucket), **{"aws-kms-key-arn": KMS_KEY})
    store = profile.open(credential)
    store.write_new(f"{profile.location}/t/f", b"rows")
    assert store.read(f"{profile.location}/t/f", limit=4) == b"rows"
    head = minio.client().head_object(Bucket=bucket, Key="lake/t/f")
    assert (head["ServerSideEncryption"], head["SSEKMSKeyId"].rpartition(":")[2]) == ("aws:kms", KMS_KEY)


def test_removals_may_carry_the_older_checksum(minio: MinioServer) -> None:
    bucket = minio.new_bucket()
    profile, credential = described(minio, bucket, minio.new_owner(bucket), **{"legacy-md5-behavior": True})
    store = profile.open(credential)
    store.write_new(f"{profile.location}/t/f", b"rows")
    found = list(store.survey(f"{profile.location}/t", within=profile.location))
    assert store.remove(found, within=profile.location, at_once=1).gone == found
    assert minio.keys_in(bucket) == []
