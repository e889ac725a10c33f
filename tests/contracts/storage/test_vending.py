"""A thief with the credentials of one table, at a real store: everything but that table at that level is refused."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientAccess, ClientRoutes
from lakewarden.storage.interface import StorageError
from lakewarden.storage.s3.credentials import AccessKey
from lakewarden.storage.s3.profile import S3Profile
from standalone.s3.programs import Keys
from tests.servers.minio import MinioServer, minio
from tests.servers.s3_server import REGION

__all__ = ["minio"]

S3 = Any
"""A client of boto3: its stubs refuse arguments from a mapping."""

READ, WRITE = AccessLevel.READ, AccessLevel.WRITE
OWN = "wh/t"
OTHERS = ("wh/t2", "wh/t.x", "wh/T", "wh/tt", "wh", "other/wh/t", "t", "wh/t%2F..%2Ft2")
"""Folders beside, around and elsewhere, each with an object `secret` in it."""
LISTS = (None, "", "w", "wh", "wh/", "wh/t", "wh/t2", "wh/t2/", "wh/T/", "other/", "wh/*", "wh/?/", "/wh/t/", "wh//t/")
"""Prefixes that show more than the table, or something else."""
REFUSED = {"AccessDenied", "InvalidTokenId", "SignatureDoesNotMatch", "InvalidAccessKeyId"}
PART = b"x" * 5 * 1024 * 1024


@dataclass(frozen=True)
class Lake:
    """A bucket with a table in it, and another bucket; the warehouse's own key may do everything in both."""

    server: MinioServer
    bucket: str
    elsewhere: str

    @property
    def root(self) -> S3:
        return self.client_of(None)

    def keys(self, level: AccessLevel, *, location: str = OWN, owner: Keys | None = None) -> Keys:
        """As an engine receives them."""
        found = self.access(level, location=location, owner=owner).credentials
        return Keys(found["s3.access-key-id"], found["s3.secret-access-key"], found["s3.session-token"])

    def access(
        self, level: AccessLevel, *, location: str = OWN, owner: Keys | None = None, **changes: Any
    ) -> ClientAccess:
        key = owner or self.server.root
        fields = {"access-key-id": key.access_key_id, "secret-access-key": key.secret_access_key}
        opened = self.profile(**changes).open(AccessKey.model_validate(fields))
        return opened.client_access(
            AccessRequest(f"s3://{self.bucket}/{location}", level, frozenset(), ClientRoutes("", "", ""))
        )

    def client(self, level: AccessLevel, *, location: str = OWN) -> S3:
        return self.client_of(self.keys(level, location=location))

    def client_of(self, keys: Keys | None) -> S3:
        return self.server.client(keys)

    def profile(self, **changes: Any) -> S3Profile:
        return S3Profile.model_validate(
            {
                "type": "s3",
                "bucket": self.bucket,
                "region": REGION,
                "endpoint": self.server.endpoint,
                "flavor": "s3-compat",
                "path-style-access": True,
                "sts-enabled": True,
                "sts-token-validity-seconds": 900,
            }
            | {name.replace("_", "-"): value for name, value in changes.items()}
        )

    def everything(self) -> dict[str, bytes]:
        """What is in both buckets, by bucket and key."""
        return {
            f"{bucket}/{key}": self.root.get_object(Bucket=bucket, Key=key)["Body"].read()
            for bucket in (self.bucket, self.elsewhere)
            for key in self.server.keys_in(bucket)
        }


@pytest.fixture(scope="module")
def lake(minio: MinioServer) -> Iterator[Lake]:
    """No test changes anything outside the table, whatever it is answered."""
    found = Lake(minio, minio.new_bucket(), minio.new_bucket())
    for bucket in (found.bucket, found.elsewhere):
        for folder in (OWN, *OTHERS):
            minio.client().put_object(Bucket=bucket, Key=f"{folder}/secret", Body=b"secret")
    before = found.everything()
    yield found
    assert found.everything() == before


@pytest.fixture(scope="module")
def thieves(lake: Lake) -> dict[AccessLevel, S3]:
    return {level: lake.client(level) for level in AccessLevel}


@pytest.fixture(params=list(AccessLevel))
def thief(request: pytest.FixtureRequest, thieves: dict[AccessLevel, S3]) -> S3:
    return thieves[request.param]


def refused(call: Callable[[], Any]) -> str:
    """The store's code for the refusal; fails if it does not refuse."""
    with pytest.raises(ClientError) as answer:
        call()
    status = answer.value.response["ResponseMetadata"]["HTTPStatusCode"]
    code = answer.value.response["Error"]["Code"]
    assert code in REFUSED or status == 403, answer.value
    return code


Attempt = Callable[[S3, str, str], object]
"""With a client, a bucket and a key that is not in the table."""

ATTEMPTS: dict[str, Attempt] = {
    "get": lambda s3, bucket, key: s3.get_object(Bucket=bucket, Key=key),
    "range": lambda s3, bucket, key: s3.get_object(Bucket=bucket, Key=key, Range="bytes=0-0"),
    "head": lambda s3, bucket, key: s3.head_object(Bucket=bucket, Key=key),
    "put": lambda s3, bucket, key: s3.put_object(Bucket=bucket, Key=key, Body=b"stolen"),
    "put-new": lambda s3, bucket, key: s3.put_object(Bucket=bucket, Key=f"{key}-new", Body=b"stolen"),
    "delete": lambda s3, bucket, key: s3.delete_object(Bucket=bucket, Key=key),
    "multipart": lambda s3, bucket, key: s3.create_multipart_upload(Bucket=bucket, Key=key),
    "tags": lambda s3, bucket, key: s3.get_object_tagging(Bucket=bucket, Key=key),
    "tag": lambda s3, bucket, key: s3.put_object_tagging(Bucket=bucket, Key=key, Tagging={"TagSet": []}),
    "attributes": lambda s3, bucket, key: s3.get_object_attributes(
        Bucket=bucket, Key=key, ObjectAttributes=["ObjectSize"]
    ),
}


@pytest.mark.parametrize("folder", OTHERS)
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_objects_of_others_are_out_of_reach(lake: Lake, thief: S3, attempt: str, folder: str) -> None:
    refused(lambda: ATTEMPTS[attempt](thief, lake.bucket, f"{folder}/secret"))


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_same_key_in_another_bucket_is_out_of_reach(lake: Lake, thief: S3, attempt: str) -> None:
    refused(lambda: ATTEMPTS[attempt](thief, lake.elsewhere, f"{OWN}/secret"))


@pytest.mark.parametrize("key", ["wh/t/../t2/secret", "wh/t/./../t2/secret", "wh/t//../t2/secret"])
@pytest.mark.parametrize("attempt", ["get", "put", "delete"])
def test_dots_do_not_lead_out(lake: Lake, thief: S3, attempt: str, key: str) -> None:
    """The store may refuse such a key as not valid."""
    with pytest.raises(ClientError) as answer:
        ATTEMPTS[attempt](thief, lake.bucket, key)
    assert 400 <= answer.value.response["ResponseMetadata"]["HTTPStatusCode"] < 500


@pytest.mark.parametrize("prefix", LISTS)
def test_lists_that_show_more_than_the_table_are_refused(lake: Lake, thief: S3, prefix: str | None) -> None:
    asked = {} if prefix is None else {"Prefix": prefix}
    refused(lambda: thief.list_objects_v2(Bucket=lake.bucket, **asked))
    refused(lambda: thief.list_objects(Bucket=lake.bucket, **asked))
    refused(lambda: thief.list_object_versions(Bucket=lake.bucket, **asked))
    refused(lambda: thief.list_objects_v2(Bucket=lake.bucket, Delimiter="/", **asked))
    refused(lambda: thief.list_objects_v2(Bucket=lake.elsewhere, **asked))


def test_the_other_bucket_is_not_listed_with_the_own_prefix(lake: Lake, thief: S3) -> None:
    refused(lambda: thief.list_objects_v2(Bucket=lake.elsewhere, Prefix=f"{OWN}/"))


BUCKET_CALLS: dict[str, Callable[[S3, str], object]] = {
    "policy": lambda s3, bucket: s3.get_bucket_policy(Bucket=bucket),
    "set-policy": lambda s3, bucket: s3.put_bucket_policy(Bucket=bucket, Policy="{}"),
    "versioning": lambda s3, bucket: s3.put_bucket_versioning(
        Bucket=bucket, VersioningConfiguration={"Status": "Enabled"}
    ),
    "uploads": lambda s3, bucket: s3.list_multipart_uploads(Bucket=bucket),
    "delete": lambda s3, bucket: s3.delete_bucket(Bucket=bucket),
    "create": lambda s3, bucket: s3.create_bucket(Bucket=f"{bucket}-2"),
    "lifecycle": lambda s3, bucket: s3.delete_bucket_lifecycle(Bucket=bucket),
}


@pytest.mark.parametrize("call", BUCKET_CALLS)
def test_the_bucket_itself_is_out_of_reach(lake: Lake, thief: S3, call: str) -> None:
    refused(lambda: BUCKET_CALLS[call](thief, lake.bucket))


def test_no_other_bucket_is_shown(lake: Lake, thief: S3) -> None:
    try:
        names = {each["Name"] for each in thief.list_buckets()["Buckets"]}
    except ClientError:
        names = set()
    assert names <= {lake.bucket}


def test_several_objects_are_deleted_as_far_as_they_are_in_the_table(
    lake: Lake, thieves: dict[AccessLevel, S3]
) -> None:
    lake.root.put_object(Bucket=lake.bucket, Key=f"{OWN}/old", Body=b"")
    keys = [f"{OWN}/old", *(f"{folder}/secret" for folder in OTHERS)]
    answer = thieves[WRITE].delete_objects(Bucket=lake.bucket, Delete={"Objects": [{"Key": key} for key in keys]})
    assert [each["Key"] for each in answer["Deleted"]] == [f"{OWN}/old"]
    assert {(each["Key"], each["Code"]) for each in answer["Errors"]} == {(key, "AccessDenied") for key in keys[1:]}


@pytest.mark.parametrize("folder", OTHERS)
def test_nothing_is_copied_out_of_or_into_another_place(
    lake: Lake, thieves: dict[AccessLevel, S3], folder: str
) -> None:
    writer = thieves[WRITE]
    own, other = f"{OWN}/secret", f"{folder}/secret"
    for bucket in (lake.bucket, lake.elsewhere):
        source = {"Bucket": bucket, "Key": other}
        refused(partial(writer.copy_object, Bucket=lake.bucket, Key=f"{OWN}/stolen", CopySource=source))
        target = {"Bucket": bucket, "Key": f"{folder}/planted"}
        refused(partial(writer.copy_object, CopySource={"Bucket": lake.bucket, "Key": own}, **target))
    upload = writer.create_multipart_upload(Bucket=lake.bucket, Key=f"{OWN}/parts")["UploadId"]
    part = {"Bucket": lake.bucket, "Key": f"{OWN}/parts", "UploadId": upload, "PartNumber": 1}
    refused(lambda: writer.upload_part_copy(CopySource={"Bucket": lake.bucket, "Key": other}, **part))
    writer.abort_multipart_upload(Bucket=lake.bucket, Key=f"{OWN}/parts", UploadId=upload)


def test_an_upload_of_another_table_is_not_taken_over(lake: Lake, thieves: dict[AccessLevel, S3]) -> None:
    key = "wh/t2/parts"
    upload = lake.root.create_multipart_upload(Bucket=lake.bucket, Key=key)["UploadId"]
    part = {"Bucket": lake.bucket, "Key": key, "UploadId": upload}
    writer = thieves[WRITE]
    refused(lambda: writer.upload_part(Body=b"x", PartNumber=1, **part))
    refused(lambda: writer.list_parts(**part))
    refused(lambda: writer.abort_multipart_upload(**part))
    refused(lambda: writer.complete_multipart_upload(MultipartUpload={"Parts": []}, **part))
    lake.root.abort_multipart_upload(**part)


def test_readers_change_nothing_in_the_table_itself(lake: Lake, thieves: dict[AccessLevel, S3]) -> None:
    reader = thieves[READ]
    key = f"{OWN}/secret"
    assert reader.get_object(Bucket=lake.bucket, Key=key)["Body"].read() == b"secret"
    for attempt in ("put", "put-new", "delete", "multipart", "tag"):
        refused(partial(ATTEMPTS[attempt], reader, lake.bucket, key))
    refused(lambda: reader.copy_object(Bucket=lake.bucket, Key=f"{OWN}/copy", CopySource=f"{lake.bucket}/{key}"))
    errors = reader.delete_objects(Bucket=lake.bucket, Delete={"Objects": [{"Key": key}]})["Errors"]
    assert [each["Code"] for each in errors] == ["AccessDenied"]
    assert lake.server.keys_in(lake.bucket, f"{OWN}/") == [key]


def test_writers_do_everything_that_engines_need(lake: Lake, thieves: dict[AccessLevel, S3]) -> None:
    writer, where = thieves[WRITE], {"Bucket": lake.bucket}
    writer.put_object(Key=f"{OWN}/data/a b+é%.parquet", Body=b"rows", IfNoneMatch="*", **where)
    assert writer.get_object(Key=f"{OWN}/data/a b+é%.parquet", Range="bytes=1-2", **where)["Body"].read() == b"ow"
    assert writer.get_bucket_location(**where)
    upload = writer.create_multipart_upload(Key=f"{OWN}/data/large", **where)["UploadId"]
    part = {"Key": f"{OWN}/data/large", "UploadId": upload, **where}
    tag = writer.upload_part(PartNumber=1, Body=PART, **part)["ETag"]
    assert len(writer.list_parts(**part)["Parts"]) == 1
    writer.complete_multipart_upload(MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]}, **part)
    writer.abort_multipart_upload(
        Key=f"{OWN}/x", UploadId=writer.create_multipart_upload(Key=f"{OWN}/x", **where)["UploadId"], **where
    )
    found = [each["Key"] for each in writer.list_objects_v2(Prefix=f"{OWN}/data/", **where)["Contents"]]
    assert found == [f"{OWN}/data/a b+é%.parquet", f"{OWN}/data/large"]
    answer = writer.delete_objects(Delete={"Objects": [{"Key": key} for key in found]}, **where)
    assert len(answer["Deleted"]) == 2


@pytest.mark.parametrize(
    "name", ["wh/a b", "wh/é", "wh/100%", "wh/a+b", "wh/a$b", "wh/$", "wh/a'b", 'wh/a"b', "wh/{x}"]
)
def test_a_location_is_meant_as_it_is_written(lake: Lake, name: str) -> None:
    lake.root.put_object(Bucket=lake.bucket, Key=f"{name}/f", Body=b"rows")
    reader = lake.client(READ, location=name)
    assert reader.get_object(Bucket=lake.bucket, Key=f"{name}/f")["Body"].read() == b"rows"
    assert reader.list_objects_v2(Bucket=lake.bucket, Prefix=f"{name}/")["KeyCount"] == 1
    refused(lambda: reader.get_object(Bucket=lake.bucket, Key="wh/t2/secret"))
    lake.root.delete_object(Bucket=lake.bucket, Key=f"{name}/f")


@pytest.mark.parametrize("name", ["wh/*", "wh/t?", "wh/${aws:username}", "wh/?"])
def test_a_location_is_never_a_pattern(lake: Lake, name: str) -> None:
    """MinIO does not know the escapes, and refuses what is there; it must not open more."""
    thief = lake.client(WRITE, location=name)
    for folder in (OWN, *OTHERS):
        for attempt in ("get", "put", "delete"):
            refused(partial(ATTEMPTS[attempt], thief, lake.bucket, f"{folder}/secret"))


@pytest.mark.parametrize("level", list(AccessLevel))
def test_keys_are_worth_nothing_without_their_own_token(lake: Lake, level: AccessLevel) -> None:
    keys, others = lake.keys(level), lake.keys(level, location="wh/t2")
    assert keys.session_token
    flipped = keys.session_token[:-2] + ("AA" if keys.session_token[-2:] != "AA" else "BB")
    own = {"Bucket": lake.bucket, "Key": f"{OWN}/secret"}
    for token in (None, flipped, others.session_token, ""):
        refused(partial(lake.client_of(replace(keys, session_token=token)).get_object, **own))
    mixed = Keys(others.access_key_id, keys.secret_access_key, keys.session_token)
    refused(lambda: lake.client_of(mixed).get_object(**own))


def test_keys_do_not_issue_wider_ones(lake: Lake) -> None:
    sts = lake.server.sts(lake.keys(WRITE))
    role = "arn:aws:iam::123456789012:role/any"
    refused(lambda: sts.assume_role(RoleArn=role, RoleSessionName="thief", DurationSeconds=900))


def test_keys_end_when_they_say(lake: Lake) -> None:
    found = lake.access(READ, location="wh/other")
    assert found.expires_at
    assert timedelta(seconds=800) < found.expires_at - datetime.now(UTC) <= timedelta(seconds=901)
    assert found.credentials["s3.session-token-expires-at-ms"] == str(int(found.expires_at.timestamp() * 1000))


def test_sessions_end_with_the_warehouses_own_user(lake: Lake) -> None:
    owner = lake.server.new_owner(lake.bucket)
    client = lake.client_of(lake.keys(READ, owner=owner))
    own = {"Bucket": lake.bucket, "Key": f"{OWN}/secret"}
    assert client.get_object(**own)["Body"].read() == b"secret"
    lake.server.admin().user_remove(owner.access_key_id)
    refused(lambda: client.get_object(**own))
    with pytest.raises(StorageError, match="the access key or its secret is not right") as error:
        lake.keys(READ, owner=owner, location="wh/new")
    assert owner.secret_access_key not in str(error.value)


def test_a_store_that_does_not_answer_is_named(lake: Lake) -> None:
    with pytest.raises(StorageError, match="check sts-endpoint"):
        lake.access(READ, sts_endpoint="http://127.0.0.1:1")
