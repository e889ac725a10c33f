"""`lakewarden dev --warehouse s3` as a process tree: stand-ins for its commands and for MinIO."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.standalone.leftovers import await_none
from tests.servers.lakewarden_server import start_dev

COMMAND = (sys.executable, str(Path(__file__).with_name("stand_in_dev.py")))
S3 = ("--warehouse", "s3")
MINIO = Path(__file__).with_name("stand_in_minio.py")


@pytest.fixture
def data_dir(open_dir: Path) -> Iterator[Path]:
    yield open_dir / "data"
    await_none(open_dir)


def environment(data_dir: Path, **extra: str) -> dict[str, str]:
    folder = data_dir.with_name("bin")
    folder.mkdir(exist_ok=True)
    program = folder / "minio"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {MINIO} "$@"\n')
    program.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    return os.environ | {"PATH": path, "STAND_IN_CALLS": str(data_dir.with_name("calls"))} | extra


def sent(data_dir: Path, path: str) -> list[dict[str, Any]]:
    lines = data_dir.with_name("calls").read_text().splitlines()
    contents = [json.loads(content) for name, _, content in (line.partition(" ") for line in lines) if name == path]
    return [json.loads(each["body"]) for each in contents]


def test_a_warehouse_in_a_bucket_is_made_with_both_ways_of_access(data_dir: Path) -> None:
    with start_dev(data_dir=data_dir, environment=environment(data_dir), command=COMMAND, arguments=S3) as server:
        store = server.info.s3
        assert store is not None
        (made,) = sent(data_dir, "/management/v1/warehouse")
        assert (
            made["storage-profile"].items()
            >= {
                "type": "s3",
                "endpoint": store.endpoint,
                "bucket": "lakewarden",
                "sts-enabled": True,
                "remote-signing-enabled": True,
            }.items()
        )
        assert made["storage-credential"]["secret-access-key"] == store.secret_access_key
        assert server.info.warehouse.location == f"s3://lakewarden/{made['storage-profile']['key-prefix']}"
        assert (data_dir / "s3.json").stat().st_mode & 0o777 == 0o600
        assert store.secret_access_key not in server.process.log_text()
        first = store
    known = environment(data_dir, STAND_IN_KNOWN_WAREHOUSE="1")
    with start_dev(data_dir=data_dir, environment=known, command=COMMAND, arguments=S3) as server:
        assert server.info.s3 == first
        (again,) = sent(data_dir, "/management/v1/warehouse/w-old/storage")
        assert again["storage-profile"] == made["storage-profile"]
