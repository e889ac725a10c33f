"""The inline policy of vended credentials, decided by a small reading of IAM's rules."""

import json
import re
from typing import Any

import pytest

from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError
from lakewarden.storage.s3.session_policy import MAX_CHARACTERS, session_policy

READ, WRITE = AccessLevel.READ, AccessLevel.WRITE
TABLE = "s3://lake/wh/t"


def policy(location: str = TABLE, level: AccessLevel = WRITE, **options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(session_policy(location, level, **{"region": "eu-west-1", **options}))
    return found


def pattern(text: str) -> re.Pattern[str]:
    """As IAM reads it: `*` any text, `?` any character, `${x}` the character x."""
    parts = re.split(r"(\$\{[*?$]\}|\*|\?)", text)
    wild = {"*": ".*", "?": "."}
    read = [wild.get(each) or re.escape(re.sub(r"^\$\{(.)\}$", r"\1", each)) for each in parts]
    return re.compile("".join(read), re.DOTALL)


def allows(document: dict[str, Any], action: str, resource: str, prefix: str | None = None) -> bool:
    for each in document["Statement"]:
        actions = each["Action"] if isinstance(each["Action"], list) else [each["Action"]]
        condition = each.get("Condition", {}).get("StringLike", {}).get("s3:prefix")
        if action not in actions or not pattern(each["Resource"]).fullmatch(resource):
            continue
        if condition is None or (prefix is not None and pattern(condition).fullmatch(prefix)):
            return True
    return False


@pytest.mark.parametrize("key", ["wh/t/data/f", "wh/t/metadata/a/b", "wh/t/*", "wh/t/${aws:username}"])
def test_a_writer_does_everything_below_the_location(key: str) -> None:
    for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"):
        assert allows(policy(), action, f"arn:aws:s3:::lake/{key}")
    assert allows(policy(level=READ), "s3:GetObject", f"arn:aws:s3:::lake/{key}")
    assert not allows(policy(level=READ), "s3:PutObject", f"arn:aws:s3:::lake/{key}")
    assert not allows(policy(level=READ), "s3:DeleteObject", f"arn:aws:s3:::lake/{key}")


@pytest.mark.parametrize("key", ["wh/t", "wh/t2/f", "wh/t.x", "wh/T/f", "wh", "f", "other/wh/t/f", "wh/f"])
def test_nothing_outside_the_location_is_allowed(key: str) -> None:
    for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"):
        assert not allows(policy(), action, f"arn:aws:s3:::lake/{key}")
        assert not allows(policy(), action, f"arn:aws:s3:::lake2/{key}")


@pytest.mark.parametrize("level", [READ, WRITE])
def test_lists_name_a_prefix_below_the_location(level: AccessLevel) -> None:
    document = policy(level=level)
    for inside in ("wh/t/", "wh/t/data/", "wh/t/metadata/0000"):
        assert allows(document, "s3:ListBucket", "arn:aws:s3:::lake", inside)
    for outside in (None, "", "wh", "wh/", "wh/t", "wh/t2", "wh/t2/", "wh/T/"):
        assert not allows(document, "s3:ListBucket", "arn:aws:s3:::lake", outside)
    assert not allows(document, "s3:ListBucket", "arn:aws:s3:::other", "wh/t/")
    assert allows(document, "s3:GetBucketLocation", "arn:aws:s3:::lake")


@pytest.mark.parametrize("name", ["a*", "a?", "*", "${aws:username}", "${*}", "a$b", "${$}{", "$", "é", "a\tb"])
def test_characters_with_a_meaning_stand_for_themselves(name: str) -> None:
    document = policy(f"s3://lake/{name}")
    assert allows(document, "s3:GetObject", f"arn:aws:s3:::lake/{name}/f")
    assert allows(document, "s3:ListBucket", "arn:aws:s3:::lake", f"{name}/")
    for other in ("ab", "aXb", "x", "root", "axb"):
        assert not allows(document, "s3:GetObject", f"arn:aws:s3:::lake/{other}/f")


def test_a_whole_bucket_is_a_location() -> None:
    assert allows(policy("s3://lake"), "s3:GetObject", "arn:aws:s3:::lake/f")
    assert not allows(policy("s3://lake"), "s3:GetObject", "arn:aws:s3:::lake2/f")


def test_the_encryption_key_is_included() -> None:
    key = "arn:aws:kms:eu-west-1:1:key/k"
    assert allows(policy(kms_key=key), "kms:GenerateDataKey", key)
    assert allows(policy(level=READ, kms_key=key), "kms:Decrypt", key)
    assert not allows(policy(level=READ, kms_key=key), "kms:GenerateDataKey", key)
    assert not allows(policy(), "kms:Decrypt", key)


@pytest.mark.parametrize(
    ("region", "partition"), [("eu-west-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")]
)
def test_resources_are_in_the_partition_of_the_region(region: str, partition: str) -> None:
    assert allows(policy(region=region), "s3:GetObject", f"arn:{partition}:s3:::lake/wh/t/f")


def test_a_policy_is_small_and_in_ascii() -> None:
    text = session_policy("s3://" + "b" * 63 + "/" + "k" * 600, WRITE, region="eu-west-1", kms_key="k" * 80)
    assert len(text) <= MAX_CHARACTERS
    assert session_policy("s3://lake/é", READ, region="eu-west-1").isascii()
    with pytest.raises(StorageError, match="is too long for credentials of its own"):
        session_policy("s3://lake/" + "k" * 1000, WRITE, region="eu-west-1")
