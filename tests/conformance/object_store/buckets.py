"""A warehouse on a bucket, as tests look at it."""

from dataclasses import dataclass
from typing import Final

from tests.servers.minio import MinioServer

WAREHOUSE: Final = "bucket"
"""Its name."""


@dataclass(frozen=True)
class Bucket:
    """The warehouse, and its bucket at the store."""

    server: MinioServer
    name: str
    warehouse: str

    def found(self) -> list[str]:
        return self.server.keys_in(self.name)
