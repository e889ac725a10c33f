"""Our signatures are those of botocore, for any request that the rules let through."""

import time
from datetime import UTC, datetime
from types import SimpleNamespace
from unittest.mock import patch
from urllib.parse import quote

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lakewarden.storage.request_signing import SignRequest
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.signing_hosts import Hosts
from lakewarden.storage.s3.signing_rules import SigningRules
from lakewarden.storage.s3.sigv4 import Signer, SigningKeys

PROFILE = S3Profile.model_validate(
    {
        "type": "s3",
        "bucket": "lake",
        "region": "eu-central-1",
        "sts-enabled": False,
        "endpoint": "http://127.0.0.1:9000",
    }
)
RULES = SigningRules("lake", Hosts(PROFILE), is_aws=True)
PIECES = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="/\\"), min_size=1, max_size=20
).filter(lambda piece: piece not in {".", ".."})
KEYS = st.lists(PIECES, min_size=1, max_size=5).map("/".join)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)
TOKENS = st.none() | st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40)


def by_botocore(request: SignRequest, uri: str, keys: SigningKeys, at: int) -> str:
    headers = {name: ",".join(values) for name, values in request.headers.items()}
    theirs = AWSRequest(method=request.method, url=uri, headers=headers, data=request.body)
    theirs.context["client_config"] = SimpleNamespace(s3={"payload_signing_enabled": request.body is not None})
    credentials = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
    with patch("botocore.auth.get_current_datetime") as now:
        now.return_value = datetime.fromtimestamp(at, UTC)
        S3SigV4Auth(credentials, "s3", PROFILE.region).add_auth(theirs)
    return str(theirs.headers["Authorization"])


@given(
    key=KEYS,
    method=st.sampled_from(["GET", "HEAD", "PUT", "DELETE"]),
    meta=st.dictionaries(st.from_regex(r"x-amz-meta-[a-z0-9]{1,8}", fullmatch=True), VALUES, max_size=3),
    token=TOKENS,
    at=st.integers(min_value=1_600_000_000, max_value=2_500_000_000),
)
def test_requests_for_any_key_have_the_signature_of_botocore(
    key: str, method: str, meta: dict[str, str], token: str | None, at: int
) -> None:
    uri = f"http://127.0.0.1:9000/lake/{quote(key)}"
    # a hash that the client sends is signed by botocore, too
    headers = {"X-Amz-Content-SHA256": ["UNSIGNED-PAYLOAD"], **{name: [value] for name, value in meta.items()}}
    request = SignRequest(PROFILE.region, method, uri, headers)
    keys = SigningKeys("AKIAEXAMPLE", "a/secret+key", token)
    signable = RULES.read(request)
    assert signable.keys == [key]
    added = Signer(keys, PROFILE.region).sign(signable.canonical, at=at)
    assert added["authorization"] == by_botocore(request, signable.uri, keys, at)


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("GET", "list-type=2&prefix=wh%2Ft%2Fa%20b%2F&delimiter=%2F&max-keys=1000&encoding-type=url"),
        ("POST", "delete"),
    ],
)
def test_requests_for_the_bucket_have_the_signature_of_botocore(method: str, query: str) -> None:
    body = "<Delete><Object><Key>wh/t/é +%2F</Key></Object></Delete>" if query == "delete" else None
    request = SignRequest(
        PROFILE.region, method, f"http://127.0.0.1:9000/lake?{query}", {"Content-Type": ["text/xml"]}, body
    )
    signable = RULES.read(request)
    keys = SigningKeys("AKIAEXAMPLE", "secret")
    at = int(time.time())
    signed = dict(request.headers) if method == "POST" else {}
    added = Signer(keys, PROFILE.region).sign(signable.canonical, at=at)
    headers = signed | {"X-Amz-Content-SHA256": [signable.canonical.payload]}
    assert added["authorization"] == by_botocore(replace(request, headers=headers), signable.uri, keys, at)


def test_the_key_of_the_day_changes_at_midnight_and_the_time_with_each_second() -> None:
    signer = Signer(SigningKeys("AKIAEXAMPLE", "secret"), PROFILE.region)
    request = SignRequest(
        PROFILE.region, "GET", "http://127.0.0.1:9000/lake/wh/t/f", {"x-amz-content-sha256": ["UNSIGNED-PAYLOAD"]}
    )
    signable = RULES.read(request)
    midnight = 1_700_006_400 - 1_700_006_400 % 86_400
    for at in (midnight - 1, midnight, midnight + 1, midnight - 1):
        added = signer.sign(signable.canonical, at=at)
        assert added["authorization"] == by_botocore(request, signable.uri, SigningKeys("AKIAEXAMPLE", "secret"), at)
