"""`lakewarden dev --warehouse s3` with real servers, and what it prints for PyIceberg and DuckDB."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg
import pytest

from standalone import snippets
from standalone.go_programs import provide
from standalone.s3.programs import MINIO
from tests.servers.lakewarden_server import DevServer, start_dev
from tests.servers.s3_server import REGION
from tests.servers.versitygw import VersityServer, versitygw

__all__ = ["versitygw"]

S3 = ("--warehouse", "s3")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    folder = tmp_path_factory.mktemp("bin")
    (folder / "minio").symlink_to(provide(MINIO.go))
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    with start_dev(arguments=S3, environment=environment) as running:
        yield running


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_downloads(script: str) -> str:
    """Its extensions are those of the wheels."""
    for module in (duckdb_extension_iceberg, duckdb_extension_avro, duckdb_extension_httpfs):
        (file,) = Path(str(module.__file__)).parent.rglob("*.duckdb_extension")
        name = file.name.partition(".")[0]
        script = script.replace(f'"{name}"', repr(str(file)))
    return script.replace("    duck.install_extension(extension)\n", "")


def test_printed_snippets_write_and_read(server: DevServer) -> None:
    printed = server.process.log_text()
    ready = server.data_dir / "ready.json"
    assert snippets.spark(ready) in printed
    for snippet in (snippets.pyiceberg(ready), snippets.duckdb(ready)):
        assert snippet in printed
    assert "id: [[1,2,3]]" in run(snippets.pyiceberg(ready))
    assert "3 │       6" in run(without_downloads(snippets.duckdb(ready)))
    store = server.info.s3
    assert store is not None
    client = boto3.client(
        "s3",
        endpoint_url=store.endpoint,
        region_name=store.region,
        aws_access_key_id=store.access_key_id,
        aws_secret_access_key=store.secret_access_key,
    )
    prefix = server.info.warehouse.location.removeprefix(f"s3://{store.bucket}/")
    found = [each["Key"] for each in client.list_objects_v2(Bucket=store.bucket)["Contents"]]
    assert any(key.endswith(".parquet") for key in found)
    assert all(key.startswith(f"{prefix}/") for key in found)


def test_store_that_issues_no_keys_signs(versitygw: VersityServer) -> None:
    keys = {
        "AWS_ACCESS_KEY_ID": versitygw.root.access_key_id,
        "AWS_SECRET_ACCESS_KEY": versitygw.root.secret_access_key,
    }
    arguments = (*S3, "--s3-endpoint", versitygw.endpoint, "--s3-region", REGION, "--s3-bucket", "made-by-dev")
    with start_dev(arguments=arguments, environment=os.environ | keys) as server:
        assert "id: [[1,2,3]]" in run(snippets.pyiceberg(server.data_dir / "ready.json"))
        assert versitygw.keys_in("made-by-dev", server.info.warehouse.location.rpartition("/")[2])


def test_store_that_refuses_the_key_is_said(versitygw: VersityServer) -> None:
    keys = {"AWS_ACCESS_KEY_ID": versitygw.root.access_key_id, "AWS_SECRET_ACCESS_KEY": "another-secret"}
    arguments = (*S3, "--s3-endpoint", versitygw.endpoint, "--s3-region", REGION)
    with (
        pytest.raises(AssertionError, match="refused the bucket lakewarden: 403; check keys and names") as refusal,
        start_dev(arguments=arguments, environment=os.environ | keys),
    ):
        pass
    assert "another-secret" not in str(refusal.value)
