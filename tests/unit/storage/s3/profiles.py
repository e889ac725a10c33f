"""Profiles and credentials of S3 for tests."""

from lakewarden.storage.s3.credentials import AccessKey
from lakewarden.storage.s3.profile import S3Profile

SECRET = "the-secret-of-the-warehouse"
KEY = AccessKey.model_validate({"access-key-id": "AKIA1", "secret-access-key": SECRET, "external-id": "tenant-1"})


def profile(**fields: object) -> S3Profile:
    given = {name.replace("_", "-"): value for name, value in fields.items()}
    return S3Profile.model_validate(
        {"type": "s3", "bucket": "lake", "region": "eu-west-1", "sts-enabled": True} | given
    )
