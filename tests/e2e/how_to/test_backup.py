"""A backup that was made as the how-to says brings back rights, secrets, events and a table that was dropped since.

Commits that are newer than the copy of the database are registered over what it holds.
"""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pytest
import requests
from pyiceberg.catalog import Catalog, load_catalog

from demo.connection import Connection
from standalone import accounts, commands
from standalone.postgres import binaries, home
from standalone.process import ManagedProcess
from standalone.web_server import start_web_server
from tests.integration.tasks.workers import worker
from tests.servers import sick_store
from tests.servers.lakewarden_server import DevServer, start_dev
from tests.servers.sick_store import SickStore

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "backup-and-restore.md"
BACK_UP, RESTORE = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
ROWS = pa.table({"amount": [1, 2, 3]})


@pytest.mark.timeout(600)
def test_a_restored_backup_serves_what_was_there(tmp_path: Path) -> None:
    with start_dev() as dev, sick_store.start() as bucket:
        catalog = connect(dev, uri=dev.info.catalog_uri)
        catalog.create_namespace("sales")
        table = catalog.create_table("sales.orders", ROWS.schema)
        table.append(ROWS)
        late = catalog.create_table("sales.late", ROWS.schema)
        late.append(ROWS)
        in_bucket = warehouse_in(bucket, dev)
        warehouses = dev.data_dir / "warehouse"
        of_server = environment_of(dev)
        url, keys = of_server["LAKEWARDEN__DATABASE__URL"], Path(of_server["LAKEWARDEN__SECRETS__KEYS_FILE"])
        settings = commands.environment(database_url=url, issuer=dev.info.issuer, local_root=warehouses, keys=keys)
        settings |= {
            "BACKUP": str(tmp_path / "backup"),
            "WAREHOUSES": str(warehouses),
            "MAINTENANCE_URL": in_database(url, "postgres"),
            "RESTORED_URL": in_database(url, "lakewarden_restored"),
            "PATH": os.pathsep.join(
                [str(programs()), str(Path(commands.lakewarden_command()[0]).parent), os.environ["PATH"]]
            ),
        }
        told = await_event(dev, server_of(dev), "before")
        run(BACK_UP, settings)
        late.append(ROWS)  # its files get into the copy, which is made after that of the database
        shutil.rmtree(tmp_path / "backup" / "files")
        shutil.copytree(warehouses, tmp_path / "backup" / "files")
        before = rights(url)
        catalog.purge_table("sales.orders")
        await_end_of_purge(url)

        restored = run(RESTORE, settings)

        assert "up to date" in restored
        environment = settings | {"LAKEWARDEN__DATABASE__URL": settings["RESTORED_URL"]}
        process, port = start_web_server(lambda port: serve(port, environment, tmp_path), path="/health")
        try:
            again = connect(dev, uri=f"http://127.0.0.1:{port}/catalog")
            assert again.load_table("sales.orders").scan().to_arrow() == ROWS
            assert rights(settings["RESTORED_URL"]) == before
            assert again.load_table("sales.late").scan().to_arrow() == ROWS
            asked: dict[str, str | bool] = {
                "name": "late",
                "metadata-location": late.metadata_location,
                "overwrite": True,
            }
            register = f"http://127.0.0.1:{port}/catalog/v1/{warehouse_id(url)}/namespaces/sales/register"
            token = dev.token(dev.info.admin)
            answer = requests.post(register, json=asked, headers={"authorization": f"Bearer {token}"}, timeout=60)
            assert answer.status_code == 200, answer.text
            assert again.load_table("sales.late").scan().to_arrow().num_rows == 2 * ROWS.num_rows
            restored_at = f"http://127.0.0.1:{port}"
            # the key of the bucket is read with the key ring, which the backup does not contain
            assert create_table(restored_at, dev, in_bucket, "after").status_code == 200
            with worker(tmp_path / "work.log", **environment):
                after = await_event(dev, restored_at, "after")
            assert [each["id"] for each in after[: len(told)]] == [each["id"] for each in told]
            assert len({each["id"] for each in after}) == len(after)
        finally:
            process.stop()


def server_of(dev: DevServer) -> str:
    return dev.info.catalog_uri.removesuffix("/catalog")


def ask(dev: DevServer, method: str, url: str, body: Any = None) -> requests.Response:
    headers = {"authorization": f"Bearer {dev.token(dev.info.admin)}"}
    return requests.request(method, url, json=body, headers=headers, timeout=60)


def warehouse_in(bucket: SickStore, dev: DevServer) -> str:
    """The id of a warehouse with a credential, and the table `before` in `ns`."""
    body = {
        "warehouse-name": "bucket",
        "storage-profile": {
            "type": "s3",
            "bucket": "lake",
            "region": "r",
            "endpoint": bucket.url,
            "flavor": "s3-compat",
            "sts-enabled": False,
        },
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "access-key-id": "k",
            "secret-access-key": "s",
        },
    }
    made = ask(dev, "POST", f"{dev.info.management_uri}/v1/warehouse", body)
    assert made.status_code in {200, 201}, made.text
    identifier = str(made.json()["id"])
    namespaces = f"{dev.info.catalog_uri}/v1/{identifier}/namespaces"
    assert ask(dev, "POST", namespaces, {"namespace": ["ns"]}).status_code == 200
    assert create_table(server_of(dev), dev, identifier, "before").status_code == 200
    return identifier


def create_table(server: str, dev: DevServer, warehouse: str, name: str) -> requests.Response:
    body = {"name": name, "schema": {"type": "struct", "fields": []}}
    return ask(dev, "POST", f"{server}/catalog/v1/{warehouse}/namespaces/ns/tables", body)


def await_event(dev: DevServer, server: str, table: str) -> list[dict[str, Any]]:
    """All events, once a worker has logged that of the new table."""
    deadline = time.monotonic() + 120
    while True:
        answer = ask(dev, "GET", f"{server}/management/v1/events?pageSize=1000")
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["events"]
        if any((each["type"], each["data"].get("name")) == ("createTable", table) for each in found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def rights(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as looking:
        return looking.execute("select * from authz_grant order by id").fetchall()


def warehouse_id(url: str) -> object:
    with psycopg.connect(url) as looking:
        return looking.execute("select id from warehouse").fetchall()[0][0]


def await_end_of_purge(url: str) -> None:
    """Its files are gone before its job is: a worker must not look at the restored files once more."""
    deadline = time.monotonic() + 120
    with psycopg.connect(url, autocommit=True) as looking:
        while looking.execute("select 1 from procrastinate_jobs where task_name = 'purge_location'").fetchone():
            assert time.monotonic() < deadline, "the purge has not ended"
            time.sleep(0.1)


def run(script: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", f"set -eu\n{script}"], env=environment, check=False, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def serve(port: int, environment: dict[str, str], directory: Path) -> ManagedProcess:
    return ManagedProcess(
        "lakewarden serve",
        commands.lakewarden_command("serve"),
        log=directory / "restored.log",
        environment=environment | {"LAKEWARDEN__SERVER__PORT": str(port)},
    )


def connect(dev: DevServer, *, uri: str) -> Catalog:
    ready = {"catalog_uri": uri, "token_endpoint": dev.info.token_endpoint}
    parts = {"engine": vars(dev.info.engine), "warehouse": vars(dev.info.warehouse)}
    return load_catalog("lake", **Connection.parse({**ready, **parts}).catalog.properties())


def environment_of(dev: DevServer) -> dict[str, str]:
    """Of the server that `lakewarden dev` has started."""
    for process in Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = dict(each.split("=", 1) for each in process.read_text().split("\0") if "=" in each)
        except OSError:  # it has ended, or is somebody else's
            continue
        is_its = environment.get("LAKEWARDEN__STORAGE__LOCAL_ROOTS") == str(dev.data_dir / "warehouse")
        if is_its and "LAKEWARDEN__SECRETS__KEYS_FILE" in environment:
            return environment
    raise AssertionError("no process of `lakewarden dev` has a database and a key ring")


def in_database(url: str, name: str) -> str:
    return urlsplit(url)._replace(path=f"/{name}").geturl()


def programs() -> Path:
    """The folder of `pg_dump` and its like, of the server's own version."""
    return binaries.find(accounts.for_server(Path("/")), shared=home.SHARED).folder
