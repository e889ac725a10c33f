"""A real MinIO for tests: S3 with versions, encryption by keys of its own, and STS that enforces inline policies.

It knows no roles: any role's name is accepted, and the caller's own policy is the most that a session gets.
"""

import base64
import json
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import pytest
from minio import MinioAdmin
from minio.credentials.providers import StaticProvider

from standalone.s3.programs import MINIO, Keys, Launch
from tests.servers.s3_server import S3Server, running

KMS_KEY: Final = "lw-key"
"""The key by which it encrypts what asks for encryption."""


@dataclass
class MinioServer(S3Server):
    PROGRAM: ClassVar = MINIO

    kms_secret: str = field(default_factory=lambda: base64.b64encode(secrets.token_bytes(32)).decode(), repr=False)

    def launch(self) -> Launch:
        launch = super().launch()
        return replace(launch, variables={**launch.variables, "MINIO_KMS_SECRET_KEY": f"{KMS_KEY}:{self.kms_secret}"})

    def new_user(self, *statements: Mapping[str, Any]) -> Keys:
        """The key of a new user who may do what the statements of its policy allow."""
        keys = Keys.new()
        admin = self.admin()
        admin.user_add(keys.access_key_id, keys.secret_access_key)
        with tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.directory) as policy:
            json.dump({"Version": "2012-10-17", "Statement": statements}, policy)
            policy.flush()
            admin.policy_add(keys.access_key_id, policy.name)
        admin.policy_set(keys.access_key_id, user=keys.access_key_id)
        return keys

    def new_owner(self, bucket: str) -> Keys:
        """The key of a new user who may do everything in one bucket, and nothing else."""
        everything = [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]
        return self.new_user({"Effect": "Allow", "Action": ["s3:*"], "Resource": everything})

    def admin(self) -> MinioAdmin:
        credentials = StaticProvider(self.root.access_key_id, self.root.secret_access_key)
        return MinioAdmin(endpoint=self.address, credentials=credentials, secure=False)


def start() -> AbstractContextManager[MinioServer]:
    return running(MinioServer)


@pytest.fixture(scope="session")
def minio() -> Iterator[MinioServer]:
    """One for all tests of a process, each with a bucket of its own."""
    with start() as server:
        yield server
