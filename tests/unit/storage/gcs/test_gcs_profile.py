import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import ValidationError

from lakewarden.config import GcsConfig, StorageConfig
from lakewarden.errors import BadRequest
from lakewarden.storage.gcs.profile import GcsProfile
from lakewarden.storage.interface import StorageError

BASE = {"type": "gcs", "bucket": "lake"}


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


PEM = pem(rsa.generate_private_key(65_537, 2048))
KEY = {
    "type": "service_account",
    "project_id": "a-project",
    "private_key_id": "an-id",
    "private_key": PEM,
    "client_email": "lake@a-project.iam.gserviceaccount.com",
    "client_id": "1",
    "auth_uri": "https://accounts.google.com/o/oauth2/auth",
    "token_uri": "https://evil.example/token",
    "universe_domain": "googleapis.com",
}


def profile(**values: Any) -> GcsProfile:
    return GcsProfile.model_validate(BASE | {name.replace("_", "-"): value for name, value in values.items()})


def credential(key: Any) -> dict[str, Any]:
    return {"type": "gcs", "credential-type": "service-account-key", "key": key}


def test_a_profile_has_one_form() -> None:
    assert profile().location == "gs://lake"
    assert profile(key_prefix="/a/b/").location == "gs://lake/a/b"
    assert GcsProfile.model_validate(profile().dump()) == profile()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bucket", "Lake"),
        ("bucket", "la"),
        ("bucket", "192.168.1.1"),
        ("bucket", "a" * 64),
        ("bucket", "lake/x"),
        ("key-prefix", "a/../b"),
        ("key-prefix", "it's"),
        ("more", 1),
    ],
)
def test_a_wrong_field_is_named(field: str, value: Any) -> None:
    with pytest.raises(ValidationError) as error:
        GcsProfile.model_validate(BASE | {field: value})
    assert error.value.errors()[0]["loc"] == (field,)


@pytest.mark.parametrize("location", ["s3://lake/a", "gcs://lake/a", "gs://", "gs://lake/it's", "gs://lake/a//b", ""])
def test_what_is_not_a_location_of_gcs_is_refused(location: str) -> None:
    with pytest.raises(StorageError):
        profile().normal(location)


def test_a_key_is_read_as_google_writes_it_and_as_the_secret_store_keeps_it() -> None:
    read = profile().parse_credential(credential(KEY))
    assert read is not None
    assert "PRIVATE" not in repr(read)
    assert profile().parse_credential(read.dump()) == read
    assert json.loads(read.dump()["key"]) == KEY


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (KEY | {"type": "authorized_user"}, "type must be 'service_account'"),
        ({name: value for name, value in KEY.items() if name != "client_email"}, "client_email is missing"),
        (KEY | {"private_key": PEM[:200]}, "private_key is not a valid RSA key"),
        (KEY | {"private_key": pem(ec.generate_private_key(ec.SECP256R1()))}, "private_key is not a valid RSA key"),
        (KEY | {"universe_domain": "evil.example"}, "universe_domain"),
        (json.dumps(KEY)[:-1], "is not valid JSON"),
        ([PEM], "key"),
        (PEM, "is not valid JSON"),
        (json.dumps([PEM]), "must be a JSON object"),
    ],
)
def test_a_wrong_key_is_refused_without_a_part_of_it(key: Any, words: str) -> None:
    with pytest.raises(BadRequest, match=words) as error:
        profile().parse_credential(credential(key))
    for secret in ("PRIVATE", PEM[40:60]):
        assert secret not in str(error.value)
        assert secret not in repr(error.value.__cause__)


def test_the_identity_of_the_server_is_used_only_if_the_operator_allows_it() -> None:
    own = profile().parse_credential({"type": "gcs", "credential-type": "gcp-system-identity"})
    with pytest.raises(BadRequest, match=r"storage.gcs.system_identity"):
        profile().ensure_credential(own, StorageConfig())
    profile().ensure_credential(own, StorageConfig(gcs=GcsConfig(system_identity=True)))
    with pytest.raises(BadRequest, match="storage-credential is missing"):
        profile().ensure_credential(None, StorageConfig())
