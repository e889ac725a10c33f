"""Which S3 store `lakewarden dev --warehouse s3` uses: one that it starts, or one that is running already."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from standalone.errors import EmbeddedError
from standalone.s3.programs import Keys

BUCKET = "lakewarden"
REGION = "us-east-1"
_KEY_ID, _SECRET, _TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"


@dataclass(frozen=True)
class S3Options:
    """Without `endpoint` a server is started. Keys of another one are in the environment: others see command lines."""

    endpoint: str | None = None
    bucket: str = BUCKET
    region: str = REGION

    def check(self, environ: Mapping[str, str] | None = None) -> None:
        """Raises EmbeddedError for options that cannot work."""
        if self.endpoint is not None:
            parts = urlsplit(self.endpoint)
            if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in self.endpoint:
                raise EmbeddedError("--s3-endpoint must be an address such as http://127.0.0.1:9000, without keys.")
            self.keys(environ)

    def keys(self, environ: Mapping[str, str] | None = None) -> Keys:
        """Those of the environment. EmbeddedError where they are missing."""
        variables = os.environ if environ is None else environ
        if variables.get(_TOKEN):
            raise EmbeddedError(f"{_TOKEN} is set, but keys that end cannot be a warehouse's: give those of a user.")
        key, secret = variables.get(_KEY_ID), variables.get(_SECRET)
        if not key or not secret:
            raise EmbeddedError(f"--s3-endpoint needs the keys of the store in {_KEY_ID} and {_SECRET}.")
        return Keys(key, secret)
