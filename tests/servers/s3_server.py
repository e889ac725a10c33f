"""What the S3 servers of the tests have in common: a process on 127.0.0.1 with a root key, buckets, clients."""

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar
from uuid import uuid4

import boto3
import urllib3
from botocore.config import Config

from standalone.go_programs import provide
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess
from standalone.s3.programs import Keys, Launch, S3Program

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client
    from types_boto3_sts import STSClient

REGION: Final = "eu-test-1"
_READY_WITHIN_S = 60.0

Server = TypeVar("Server", bound="S3Server")


class S3ServerFailed(AssertionError):
    """It did not start; the message holds what it said."""


@dataclass
class S3Server:
    """A running server at `endpoint` (path style, region `REGION`); `root` may do everything."""

    PROGRAM: ClassVar[S3Program]

    endpoint: str
    directory: Path
    root: Keys = field(default_factory=Keys.new)
    _process: ManagedProcess | None = field(default=None, repr=False)

    def launch(self) -> Launch:
        executable = provide(self.PROGRAM.go)
        return self.PROGRAM.launch(
            executable, address=self.address, directory=self.directory, root=self.root, region=REGION
        )

    @property
    def address(self) -> str:
        """As "127.0.0.1:9000"."""
        return self.endpoint.removeprefix("http://")

    @property
    def process(self) -> ManagedProcess:
        if self._process is None:
            raise S3ServerFailed("The S3 server is stopped: call `start`.")
        return self._process

    def client(self, keys: Keys | None = None, *, endpoint: str | None = None) -> "S3Client":
        """A boto3 client without retries; with the root key unless others are given."""
        client: S3Client = boto3.client("s3", **self._arguments(keys, endpoint))
        return client

    def sts(self, keys: Keys) -> "STSClient":
        client: STSClient = boto3.client("sts", **self._arguments(keys, None))
        return client

    def new_bucket(self, *, is_versioned: bool = False) -> str:
        """The name of a new bucket: each test has its own."""
        name = f"lw-{uuid4().hex[:20]}"
        client = self.client()
        client.create_bucket(Bucket=name)
        if is_versioned:
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        return name

    def keys_in(self, bucket: str, prefix: str = "") -> list[str]:
        """All that is there, in order."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [each["Key"] for page in pages for each in page.get("Contents", [])]

    def start(self) -> None:
        """Start it (also again, with the same buckets and on the same port) and wait until it answers."""
        launch = self.launch()
        self._process = ManagedProcess(
            str(Path(launch.command[0]).name),
            launch.command,
            log=self.directory / "server.log",
            environment=launch.environment,
            directory=self.directory,
        )
        self._process.start()
        deadline = time.monotonic() + _READY_WITHIN_S
        while not self._is_ready(self.PROGRAM.health):
            if self._process.exited or time.monotonic() > deadline:
                raise S3ServerFailed(self._process.obituary(when="before it was ready"))
            time.sleep(0.05)

    def stop(self) -> None:
        """End it; connections to its port are refused from now on. Twice does no harm."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """It accepts connections but says nothing (SIGSTOP)."""
        pid = self.process.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _arguments(self, keys: Keys | None, endpoint: str | None) -> dict[str, Any]:
        used = keys or self.root
        return {
            "endpoint_url": endpoint or self.endpoint,
            "region_name": REGION,
            "aws_access_key_id": used.access_key_id,
            "aws_secret_access_key": used.secret_access_key,
            "aws_session_token": used.session_token,
            "config": Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        }

    def _is_ready(self, path: str) -> bool:
        with urllib3.PoolManager(retries=False, timeout=5.0) as http:
            try:
                return http.request("GET", f"{self.endpoint}{path}").status == 200
            except urllib3.exceptions.HTTPError:
                return False


@contextmanager
def running(kind: type[Server]) -> Iterator[Server]:
    """A server of its own, stopped and forgotten at the end."""
    with tempfile.TemporaryDirectory(prefix="lw-s3-") as directory:
        server = kind(f"http://{HOST}:{free_port()}", Path(directory))
        try:
            server.start()
            yield server
        finally:
            server.stop()
