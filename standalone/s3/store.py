"""The S3 store of `lakewarden dev --warehouse s3`: finds, builds or starts a server, and makes the bucket."""

import json
import secrets
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, TextIO

from standalone.errors import EmbeddedError
from standalone.go_programs import GoProgramUnavailable, program_path, provide
from standalone.private_files import write_private
from standalone.process import ManagedProcess
from standalone.ready import ReadyStore
from standalone.s3.options import S3Options
from standalone.s3.programs import MINIO, VERSITYGW, Keys, S3Program

_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class S3Store:
    """A bucket, and a key that may do everything in it; `issues_keys` None: it is to be found out."""

    endpoint: str
    bucket: str
    prefix: str
    region: str
    keys: Keys
    issues_keys: bool | None

    @property
    def location(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}"

    def profile(self, *, issues_keys: bool) -> dict[str, Any]:
        """The storage profile of a warehouse there; requests are signed for engines that want that, in any case."""
        return {
            "type": "s3",
            "flavor": "s3-compat",
            "bucket": self.bucket,
            "key-prefix": self.prefix,
            "region": self.region,
            "endpoint": self.endpoint,
            "sts-enabled": issues_keys,
            "remote-signing-enabled": True,
        }

    @property
    def credential(self) -> dict[str, str]:
        return {
            "type": "s3",
            "credential-type": "access-key",
            "access-key-id": self.keys.access_key_id,
            "secret-access-key": self.keys.secret_access_key,
        }

    @property
    def described(self) -> ReadyStore:
        return ReadyStore(self.endpoint, self.region, self.bucket, self.keys.access_key_id, self.keys.secret_access_key)

    def make_bucket(self) -> None:
        """Make the bucket if it is not there. EmbeddedError says why it cannot be used."""
        import boto3  # noqa: PLC0415 takes long to load, and no other warehouse needs it
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        limits = Config(s3={"addressing_style": "path"}, connect_timeout=_TIMEOUT_S, read_timeout=_TIMEOUT_S)
        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id=self.keys.access_key_id,
            aws_secret_access_key=self.keys.secret_access_key,
            config=limits,
        )
        try:
            try:
                client.head_bucket(Bucket=self.bucket)
            except ClientError as error:
                if error.response["ResponseMetadata"]["HTTPStatusCode"] != HTTPStatus.NOT_FOUND:
                    raise
                client.create_bucket(Bucket=self.bucket)
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")[:80]
            raise EmbeddedError(
                f"The store at {self.endpoint} refused the bucket {self.bucket}: {code}; check keys and names."
            ) from None
        except (BotoCoreError, ValueError) as error:
            reason = type(error).__name__
            raise EmbeddedError(f"The store at {self.endpoint} cannot be used: {reason}.") from None


@dataclass(frozen=True)
class _Kept:
    """What stays the same in all runs of a data directory: our server's key, and the place of the warehouse."""

    access_key_id: str
    secret_access_key: str
    prefix: str

    @classmethod
    def of(cls, file: Path) -> "_Kept":
        try:
            return cls(**json.loads(file.read_bytes()))
        except FileNotFoundError:
            keys = Keys.new()
        except (ValueError, TypeError) as error:
            raise EmbeddedError(f"{file} is damaged: start with an empty directory (--data-dir).") from error
        kept = cls(keys.access_key_id, keys.secret_access_key, f"dev-{secrets.token_hex(4)}")
        write_private(file, json.dumps(asdict(kept)) + "\n")
        return kept


def find_program(progress: TextIO) -> tuple[S3Program, Path]:
    """A server and its executable: on the PATH, or built before, or built now; preferably one that issues keys.

    EmbeddedError says what to install.
    """
    for program in (MINIO, VERSITYGW):
        built = program_path(program.go)
        if found := shutil.which(program.go.name) or (built if built.is_file() else None):
            return program, Path(found).absolute()
    try:
        return MINIO, provide(MINIO.go, progress=progress)
    except GoProgramUnavailable as error:
        raise EmbeddedError(
            f"There is no S3 server for --warehouse s3. {error}\n"
            "Otherwise put `minio` or `versitygw` on the PATH, or name a store that is running with --s3-endpoint."
        ) from error


def open_store(
    options: S3Options,
    *,
    data_dir: Path,
    progress: TextIO,
    start: Callable[[Callable[[int], ManagedProcess], str], str],
) -> S3Store:
    """The store of `options`, with its bucket. `start(make, health)` starts the process and returns its address."""
    kept = _Kept.of(data_dir / "s3.json")
    if options.endpoint is not None:
        keys, issues_keys = options.keys(), None
        endpoint = options.endpoint.rstrip("/")
    else:
        program, executable = find_program(progress)
        keys, issues_keys = Keys(kept.access_key_id, kept.secret_access_key), program.issues_keys
        # each reads its own format only
        directory = data_dir / "s3" / program.name
        for folder in (directory.parent, directory):
            folder.mkdir(mode=0o700, exist_ok=True)

        def make(port: int) -> ManagedProcess:
            launch = program.launch(
                executable, address=f"127.0.0.1:{port}", directory=directory, root=keys, region=options.region
            )
            return ManagedProcess(
                f"`{program.name}`",
                launch.command,
                log=data_dir / "logs" / "s3.log",
                environment=launch.environment,
                directory=directory,
            )

        endpoint = start(make, program.health)
    store = S3Store(endpoint, options.bucket, kept.prefix, options.region, keys, issues_keys)
    store.make_bucket()
    return store
