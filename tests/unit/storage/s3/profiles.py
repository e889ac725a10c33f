"""Profiles and credentials of S3 for tests."""

from lakewarden.storage.s3.credentials import AccessKey
from lakewarden.storage.s3.profile import S3Profile

SECRET = "the-secret-of-the-warehouse"
KEY = AccessKey.model_validate({"access-key-id": "AKIA1", "secret-access-key": SECRET, "external-id": "tenant-1"})


ROLE = "arn:aws:iam::123456789012:role/lakehouse"


def profile(**fields: object) -> S3Profile:
    """On AWS, with a role for engines, unless the fields say otherwise."""
    given = {name.replace("_", "-"): value for name, value in fields.items()}
    role = {} if given.get("flavor") == "s3-compat" else {"sts-role-arn": ROLE}
    required = {"type": "s3", "bucket": "lake", "region": "eu-west-1", "sts-enabled": True}
    return S3Profile.model_validate(required | role | given)
