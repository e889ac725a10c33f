"""What the tests rely on in the S3 servers that they start: a change of versions must not take it away silently."""

import json

import pytest
from botocore.exceptions import ClientError

from standalone.s3.programs import Keys
from tests.servers.minio import MinioServer, minio
from tests.servers.s3_server import S3Server
from tests.servers.versitygw import versitygw

__all__ = ["minio", "versitygw"]


@pytest.fixture(params=["minio", "versitygw"])
def server(request: pytest.FixtureRequest) -> S3Server:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def test_a_file_is_put_only_where_there_is_none(server: S3Server) -> None:
    bucket, client = server.new_bucket(), server.client()
    client.put_object(Bucket=bucket, Key="a b/é+", Body=b"one", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.put_object(Bucket=bucket, Key="a b/é+", Body=b"two", IfNoneMatch="*")
    assert client.get_object(Bucket=bucket, Key="a b/é+")["Body"].read() == b"one"
    assert server.keys_in(bucket) == ["a b/é+"]


def test_a_wrong_secret_is_refused(server: S3Server) -> None:
    bucket = server.new_bucket()
    wrong = Keys(server.root.access_key_id, "not the secret")
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        server.client(wrong).list_objects_v2(Bucket=bucket)


def test_versions_are_kept_where_the_bucket_says_so(server: S3Server) -> None:
    bucket, client = server.new_bucket(is_versioned=True), server.client()
    for content in (b"one", b"two"):
        client.put_object(Bucket=bucket, Key="f", Body=content)
    client.delete_object(Bucket=bucket, Key="f")
    there = client.list_object_versions(Bucket=bucket)
    assert (len(there["Versions"]), len(there["DeleteMarkers"])) == (2, 1)


def test_a_session_can_do_no_more_than_its_policy(minio: MinioServer) -> None:
    bucket = minio.new_bucket()
    owner = minio.new_owner(bucket)
    policy = {"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": [f"arn:aws:s3:::{bucket}/a/*"]}
    session = minio.sts(owner).assume_role(
        RoleArn="arn:aws:iam::000000000000:role/any",
        RoleSessionName="tests",
        Policy=json.dumps({"Version": "2012-10-17", "Statement": [policy]}),
    )["Credentials"]
    keys = Keys(session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"])
    client = minio.client(keys)
    client.put_object(Bucket=bucket, Key="a/f", Body=b"")
    for key in ("b/f", "ab/f", "a"):
        with pytest.raises(ClientError, match="AccessDenied"):
            client.put_object(Bucket=bucket, Key=key, Body=b"")
    with pytest.raises(ClientError, match="AccessDenied"):
        minio.client(owner).list_objects_v2(Bucket=minio.new_bucket())


def test_a_server_that_is_started_again_has_its_buckets(server: S3Server) -> None:
    bucket = server.new_bucket()
    server.stop()
    server.start()
    assert server.keys_in(bucket) == []
