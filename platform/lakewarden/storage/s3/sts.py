"""Temporary keys of AWS STS, and of stores that offer its AssumeRole (MinIO and others)."""

import logging
from typing import Any, Final

from botocore.exceptions import ClientError, NoCredentialsError

from lakewarden.config import StorageConfig
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError, StorageSilent, StorageUnavailable
from lakewarden.storage.object_faults import Fault, plain_code
from lakewarden.storage.s3.bounded_answers import FAILURES
from lakewarden.storage.s3.credentials import AccessKey, AwsSystemIdentity
from lakewarden.storage.s3.endpoints import is_of_aws
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.server_keys import SESSION_NAME, own_keys, request_config
from lakewarden.storage.s3.session_policy import session_policy
from lakewarden.storage.s3.temporary_keys import TemporaryKeys

logger = logging.getLogger(__name__)

_CLOCK: Final = "the server's clock differs from the store's: set it by NTP"
_BUSY: Final = "the store has too many requests now; try again shortly"
_LIMITED: Final = "the policy and tags of the session are too large: use shorter locations or fewer sts-session-tags"
_UNKNOWN_KEY: Final = "the access key is not valid there: set a new storage credential"
_THROTTLED: Final = ("Throttling", "ThrottlingException", "TooManyRequests", "TooManyRequestsException", "SlowDown")
_REASONS: Final = {
    "AccessDenied": "it is not allowed: check the trust policy of the role and the external id, and that the key may "
    "call sts:AssumeRole (and sts:TagSession with sts-session-tags)",
    "NoSuchEntity": "the role does not exist: check sts-role-arn",
    "InvalidClientTokenId": _UNKNOWN_KEY,
    "InvalidAccessKeyId": _UNKNOWN_KEY,
    "UnrecognizedClientException": _UNKNOWN_KEY,
    "SignatureDoesNotMatch": "the secret access key is not the right one: set a new storage credential",
    "ExpiredToken": "the server's own session has ended; try again",
    "ExpiredTokenException": "the server's own session has ended; try again",
    "RequestExpired": _CLOCK,
    "RequestTimeTooSkewed": _CLOCK,
    "PackedPolicyTooLarge": _LIMITED,
    "MalformedPolicyDocument": _LIMITED,
    "RegionDisabledException": "STS is not active in the region: activate it, or set sts-endpoint",
    "ValidationError": "a value of the profile is not allowed: check sts-token-validity-seconds against the longest "
    "session of the role, and sts-session-tags",
    **dict.fromkeys(_THROTTLED, _BUSY),
    "NotImplemented": "the store has no STS: set sts-enabled to false, and use remote signing",
    "MethodNotAllowed": "the store has no STS there: check sts-endpoint, or set sts-enabled to false",
}


class TokenService:
    """Issues keys by AssumeRole with the credential of a warehouse."""

    def __init__(self, profile: S3Profile, *, external_id: str | None, client: Any) -> None:  # noqa: ANN401 made by botocore
        self._profile = profile
        self._external_id = external_id
        self._client = client

    def issue(self, location: str, level: AccessLevel) -> TemporaryKeys:
        profile = self._profile
        policy = session_policy(location, level, region=profile.region, kms_key=profile.aws_kms_key_arn)
        try:
            answer = self._client.assume_role(**self._request(policy))
        except ClientError as error:
            raise self._refused(error) from None
        except NoCredentialsError:
            raise StorageError(
                "The server has no AWS identity: give its machine, container or pod a role, or use an access key"
            ) from None
        except (*FAILURES, ValueError) as error:
            # only its type: the text may be the answer, with keys in it
            logger.warning("STS at %s does not answer: %s", self._client.meta.endpoint_url, type(error).__name__)
            raise StorageSilent(
                f"STS at {self._client.meta.endpoint_url} does not answer: check sts-endpoint and the network"
            ) from None
        try:
            keys = answer["Credentials"]
            return TemporaryKeys(
                keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], expires_at=keys["Expiration"]
            )
        except KeyError as error:
            raise StorageError(
                f"STS at {self._client.meta.endpoint_url} answered without {error}: check sts-endpoint"
            ) from None

    def _request(self, policy: str) -> dict[str, Any]:
        profile = self._profile
        request: dict[str, Any] = {
            "RoleSessionName": SESSION_NAME,
            "Policy": policy,
            "DurationSeconds": profile.sts_token_validity_seconds,
        }
        if role := role_of(profile):
            request["RoleArn"] = role
        if self._external_id:
            request["ExternalId"] = self._external_id
        if profile.sts_session_tags:
            request["Tags"] = [{"Key": key, "Value": value} for key, value in profile.sts_session_tags.items()]
        return request

    def _refused(self, error: ClientError) -> StorageError:
        code = plain_code(error.response.get("Error", {}).get("Code")) or ""
        role = role_of(self._profile)
        what = f"to assume the role {role}" if role else "to issue temporary keys"
        endpoint = self._client.meta.endpoint_url
        # AWS names accounts and policies, for operators only; other stores and sentences may repeat the request
        said = error.response["Error"].get("Message", "") if code == "AccessDenied" and is_of_aws(endpoint) else ""
        logger.warning("STS at %s refused %s: %s %r", endpoint, what, code, said[:1000])
        reason = _REASONS.get(code, f"it answered {code!r}")
        if not role and code == "AccessDenied":
            reason = "the access key or its secret is not right, or its user may not do this"
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        passes = code in _THROTTLED or (status is not None and Fault(status).is_passing)
        kind = StorageUnavailable if passes else StorageError
        return kind(f"STS refused {what}: {reason}")


def role_of(profile: S3Profile) -> str | None:
    """The role whose sessions engines receive; None: the store knows no roles."""
    return profile.sts_role_arn or profile.assume_role_arn


def sts_client(profile: S3Profile, credential: AccessKey | AwsSystemIdentity, settings: StorageConfig) -> Any:  # noqa: ANN401 made by botocore
    # validation would demand a role, which compatible stores do not have
    limits = request_config(settings, parameter_validation=False)
    keys = own_keys(profile, credential)
    return keys.client("sts", region=profile.region, endpoint=profile.sts_url, config=limits)
