"""What the validation of a warehouse finds out about keys of engines, with keys that a real store has issued."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientAccess
from lakewarden.storage.interface import AccessDenied, Storage, StorageError
from lakewarden.storage.probe import EngineProbe, Probe
from lakewarden.storage.profiles import parse_profile
from lakewarden.storage.s3.credentials import AccessKey
from standalone.s3.programs import Keys
from tests.servers.minio import MinioServer, minio
from tests.servers.s3_server import REGION

__all__ = ["minio"]

WRITES = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")
READS = ("s3:GetObject",)


class Issuing:
    """A store whose keys the test issues: with a policy for each table, or with none."""

    def __init__(self, inner: Storage, server: MinioServer, owner: Keys, bucket: str, *, limits: bool) -> None:
        self._inner, self._sts, self._bucket, self._limits = inner, server.sts(owner), bucket, limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def client_access(self, request: AccessRequest) -> ClientAccess:
        key = request.location.removeprefix(f"s3://{self._bucket}/")
        actions = WRITES if request.level is AccessLevel.WRITE else READS
        listed = {"Action": "s3:ListBucket", "Condition": {"StringLike": {"s3:prefix": [f"{key}/*"]}}}
        statements: list[dict[str, Any]] = [
            {"Effect": "Allow", "Action": actions, "Resource": f"arn:aws:s3:::{self._bucket}/{key}/*"},
            {"Effect": "Allow", "Resource": f"arn:aws:s3:::{self._bucket}", **listed},
        ]
        everything = [{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::*"}]
        policy = {"Version": "2012-10-17", "Statement": statements if self._limits else everything}
        role = "arn:aws:iam::123456789012:role/any"
        issued = self._sts.assume_role(RoleArn=role, RoleSessionName="tests", Policy=json.dumps(policy))
        keys = issued["Credentials"]
        return ClientAccess(
            credentials={
                "s3.access-key-id": keys["AccessKeyId"],
                "s3.secret-access-key": keys["SecretAccessKey"],
                "s3.session-token": keys["SessionToken"],
            }
        )


@pytest.fixture
def probes(minio: MinioServer, request: pytest.FixtureRequest) -> Iterator[EngineProbe]:
    bucket = minio.new_bucket()
    owner = minio.new_owner(bucket)
    profile = parse_profile(
        {
            "type": "s3",
            "bucket": bucket,
            "key-prefix": "lake",
            "region": REGION,
            "endpoint": minio.endpoint,
            "flavor": "minio",
            "sts-enabled": True,
        }
    )
    credential = AccessKey.model_validate(
        {"access-key-id": owner.access_key_id, "secret-access-key": owner.secret_access_key}
    )
    store = Issuing(profile.open(credential), minio, owner, bucket, limits=request.param)
    first = Probe(store, profile.location)
    first.write_and_read()
    found = EngineProbe(profile, store, first.file)
    yield found
    found.clean_up()
    first.clean_up(folders=True)
    assert minio.keys_in(bucket) == []


@pytest.mark.parametrize("probes", [True], indirect=True)
def test_keys_with_a_policy_do_not_leave_their_table(probes: EngineProbe) -> None:
    assert probes.issue()
    probes.write_and_read()
    probes.try_to_leave()


@pytest.mark.parametrize("probes", [False], indirect=True)
def test_keys_without_a_policy_are_found_out(probes: EngineProbe) -> None:
    assert probes.issue()
    probes.write_and_read()
    with pytest.raises(
        StorageError, match=r"can also write a file beside their table, read .*, list .*, delete a file"
    ):
        probes.try_to_leave()


def test_a_refusal_is_told_from_wrong_keys(minio: MinioServer) -> None:
    bucket = minio.new_bucket()
    profile = parse_profile(
        {"type": "s3", "bucket": bucket, "region": REGION, "endpoint": minio.endpoint, "flavor": "minio"}
        | {"sts-enabled": False}
    )
    stranger = minio.new_user({"Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::other/*"]})
    owner = minio.new_owner(bucket)
    wrong = Keys(owner.access_key_id, f"{owner.secret_access_key}x")
    for used, is_refusal in ((stranger, True), (wrong, False)):
        keys = {"access-key-id": used.access_key_id, "secret-access-key": used.secret_access_key}
        with pytest.raises(StorageError) as raised:
            profile.open(AccessKey.model_validate(keys)).write_new(f"s3://{bucket}/file", b"x")
        assert isinstance(raised.value, AccessDenied) is is_refusal
        assert used.secret_access_key not in str(raised.value)
