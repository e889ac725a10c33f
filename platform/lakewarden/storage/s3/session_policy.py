"""The inline policy that limits temporary credentials to one location and one level of access (AWS IAM, STS)."""

import json
from typing import Any, Final

from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError

MAX_CHARACTERS: Final = 2048
"""STS refuses a longer policy (AssumeRole, `Policy`)."""

_READS: Final = ("s3:GetObject",)
_WRITES: Final = (
    *_READS,
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
)
_KEY_READS: Final = ("kms:Decrypt",)
_KEY_WRITES: Final = (*_KEY_READS, "kms:GenerateDataKey")

_PARTITIONS: Final = {"cn-": "aws-cn", "us-gov-": "aws-us-gov", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b"}


def session_policy(location: str, level: AccessLevel, *, region: str, kms_key: str | None = None) -> str:
    """The policy for what lies below `location` (in the normal form), as JSON in ASCII.

    Lists must name a prefix that ends the location's folder: S3 compares prefixes as texts, so a list of `t` would show
    the keys of `t2`. Raises StorageError for a location that is too long to fit in.
    """
    bucket, _, key = location.partition("://")[2].partition("/")
    writes = level is AccessLevel.WRITE
    store = f"arn:{partition_of(region)}:s3:::{bucket}"
    below = _literal(key) + "/*" if key else "*"
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": _WRITES if writes else _READS, "Resource": f"{store}/{below}"},
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": store,
            "Condition": {"StringLike": {"s3:prefix": below}},
        },
        {"Effect": "Allow", "Action": "s3:GetBucketLocation", "Resource": store},
    ]
    if kms_key:
        actions = _KEY_WRITES if writes else _KEY_READS
        statements.append({"Effect": "Allow", "Action": actions, "Resource": kms_key})
    policy = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    if len(policy) > MAX_CHARACTERS:
        raise StorageError(
            f"The location {location[:80]!r}… is too long for credentials of its own: the policy that limits them has "
            f"{len(policy)} characters, and the store allows {MAX_CHARACTERS}"
        )
    return policy


def partition_of(region: str) -> str:
    """Of AWS, which the names of its resources contain."""
    return next((name for start, name in _PARTITIONS.items() if region.startswith(start)), "aws")


def _literal(key: str) -> str:
    """The key in a pattern: `*` and `?` stand for themselves, and `${` begins no variable (IAM, policy variables)."""
    escaped = key.replace("${", "${$}{")
    return "".join("${" + each + "}" if each in "*?" else each for each in escaped)
