"""A service account of Google Cloud that exists in the tests only."""

from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@cache
def service_account() -> dict[str, Any]:
    """The credential of a request."""
    key = rsa.generate_private_key(65_537, 2048)
    return {
        "credential-type": "service-account-key",
        "key": {
            "type": "service_account",
            "project_id": "tests",
            "private_key_id": "1",
            "private_key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(),
            "client_email": "lake@tests.iam.gserviceaccount.com",
        },
    }
