"""What S3's error codes mean for a warehouse, and what to change."""

from typing import Final

from lakewarden.storage.object_faults import Fault

_ADVICE: Final = {
    "InvalidAccessKeyId": "it does not know the access key; check access-key-id",
    "SignatureDoesNotMatch": "the secret does not belong to the access key; check secret-access-key",
    "AccessDenied": "the access key may not do this; its policy must allow s3:GetObject, s3:PutObject, "
    "s3:DeleteObject and s3:ListBucket for the warehouse's bucket and prefix",
    "AccountProblem": "there is a problem with the account",
    "AllAccessDisabled": "all access to the bucket is disabled",
    "NoSuchBucket": "the bucket does not exist; check bucket and endpoint, or create it",
    "InvalidBucketName": "the bucket's name is not valid there; check bucket and endpoint",
    "RequestTimeTooSkewed": "its clock and this server's differ too much; synchronize them",
    "ExpiredToken": "the session has expired; check the clocks, and give a new credential",
    "InvalidToken": "the session token is not valid; give a new credential",
    "InvalidTokenId": "the session token is not valid; give a new credential",
    "PermanentRedirect": "the bucket is at another endpoint; check region and endpoint",
    "TemporaryRedirect": "the bucket is at another endpoint; check region and endpoint",
    "IllegalLocationConstraintException": "the bucket is in another region; check region",
    "AuthorizationHeaderMalformed": "it is in another region; check region",
    "MethodNotAllowed": "it does not support this request; check that the endpoint is that of S3",
    "NotImplemented": "it does not support this request; it must support If-None-Match: *",
    "XMinioStorageFull": "it has no space left",
    "QuotaExceeded": "the quota is used up",
    "SlowDown": "it asks for fewer requests; try again later",
}


def advice(fault: Fault) -> str | None:
    if fault.code is None:
        return _without_code(fault)
    if fault.code.startswith("KMS."):
        return f"its key service answered {fault.code}; check aws-kms-key-arn, and who may use this key"
    known = _ADVICE.get(fault.code)
    if known and fault.region and known.endswith("region"):
        return f"{known} ({fault.region!r} is expected)"
    return f"{known} ({fault.code})" if known else None


def _without_code(fault: Fault) -> str | None:
    if fault.status in {401, 403}:
        return _ADVICE["AccessDenied"]
    if fault.status in {301, 307, 308}:
        return _ADVICE["PermanentRedirect"]
    return None
