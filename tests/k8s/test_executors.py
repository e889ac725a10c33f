"""The pipeline with executors in pods of their own: they write to a bucket, one of them is deleted, and nothing is left.

Executors have neither keys to the bucket nor a token of the cluster; their driver may make pods, and nothing else.
"""

import base64
import json
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from standalone.go_programs import provide
from standalone.process import ManagedProcess
from standalone.provisioning import ENGINE_PRIVILEGES
from standalone.s3.programs import MINIO, Keys
from standalone.s3.store import S3Store
from tests.k8s.images import archives
from tests.k8s.lake import Databases
from tests.k8s.release import OWN, SMALL, WITHIN, Release, secret
from tests.pipeline.durable_log import Event
from tests.pipeline.processes import random_changes, replayed
from tests.servers.kubernetes_node import ADDRESS, Node, until
from tests.servers.s3_server import REGION

pytestmark = pytest.mark.timeout(3600)
CHANGES: Final = 2000
PATIENCE_S: Final = 1200.0
"""For what Spark does on a machine that others keep busy."""
S3: Final = f"http://{ADDRESS}:19000"
TOKENS: Final = f"http://{ADDRESS}:19001/token"


@pytest.fixture(scope="module")
def spark_image(node: Node) -> None:
    node.load_image(archives("lakewarden-spark")[0])


@pytest.fixture
def store(node: Node, tmp_path: Path) -> Iterator[S3Store]:
    """A bucket of a MinIO on the node, where pods reach it."""
    keys = Keys.new()
    folder = tmp_path / "minio"
    folder.mkdir()
    launch = MINIO.launch(
        provide(MINIO.go), address=S3.removeprefix("http://"), directory=folder, root=keys, region=REGION
    )
    command = [*node.enter, *launch.command]
    with ManagedProcess("minio", command, log=tmp_path / "minio.log", environment=launch.environment) as process:
        asked = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", f"{S3}{MINIO.health}")
        is_up = lambda: node.run(*asked, check=False) == "200"  # noqa: E731
        until(is_up, "MinIO", node, process)
        signed = ("--aws-sigv4", f"aws:amz:{REGION}:s3", "--user", f"{keys.access_key_id}:{keys.secret_access_key}")
        node.run("curl", "-sf", *signed, "-X", "PUT", f"{S3}/lake")
        yield S3Store(S3, "lake", "wh", REGION, keys, issues_keys=True)


@dataclass(frozen=True)
class Stream:
    """A warehouse of a release whose changes are sent and read by `engine`, a service account's token."""

    release: Release
    databases: Databases
    engine: str

    def send(self, events: list[Event]) -> None:
        for start in range(0, len(events), 100):
            status, answer = self.release.ask(
                "POST", "/lakehouse/w/lake/cdc", {"events": events[start : start + 100]}, token=self.engine
            )
            assert status == 200, answer
            assert answer["eventsAccepted"] == 100

    def positions(self) -> tuple[int, int]:
        """The last one of the log, and the one up to which everything is in snapshots."""
        said = self.databases.run(
            "select last_position, flushed_position from ingest_log_head", database=self.release.name
        )
        last, _, flushed = said.strip().partition("|")
        return int(last), int(flushed)

    def await_flushed(self, position: int) -> None:
        is_there = lambda: self.positions()[1] >= position  # noqa: E731
        until(is_there, f"position {position}", self.release.node, within_s=PATIENCE_S)

    def rows(self, *tables: str) -> dict[str, list[dict[str, Any]]]:
        program = (sys.executable, "-m", "tests.k8s.rows", f"http://{self.release.address}/catalog")
        said = self.release.node.run(*program, self.engine, "lake", *tables, timeout_s=600)
        found: dict[str, list[dict[str, Any]]] = json.loads(said)
        return found

    def executors(self) -> set[str]:
        """The names of those that run."""
        return {name for name, is_ready in self.release.ready("executor").items() if is_ready}

    def await_executors(self, *, without: str = "") -> set[str]:
        is_there = lambda: len(self.executors() - {without}) == 2  # noqa: E731
        until(is_there, "two executors", self.release.node, within_s=PATIENCE_S)
        return self.executors() - {without}


@pytest.fixture
def stream(
    release: Callable[[str], Release], databases: Databases, store: S3Store, tmp_path: Path, spark_image: None
) -> Iterator[Stream]:
    made = release("stream")
    for account in ("owner", "engine"):
        made.kubectl("create", "serviceaccount", account)
    # who signs in at the token endpoint gets the token of `engine`
    (tmp_path / "token").write_text(engine := made.token("engine"))
    (tmp_path / "secret").write_text(client_secret := secrets.token_hex(16))
    secret(made, "pipeline", secret=client_secret)
    secret(made, "keys", keys=f"a:{base64.b64encode(secrets.token_bytes(32)).decode()}")
    host, port = TOKENS.removeprefix("http://").removesuffix("/token").split(":")
    program: list[str | Path] = [
        *made.node.enter,
        sys.executable,
        "-m",
        "tests.k8s.token_endpoint",
        host,
        port,
        tmp_path,
    ]
    with ManagedProcess("tokens", program, log=tmp_path / "tokens.log"):
        made.install("--set", "migrations.mode=init", values=_values(made))
        yield _prepared(Stream(made, databases, engine), store)


def _values(made: Release) -> dict[str, Any]:
    pipeline = {
        "catalog_uri": f"http://{made.full_name}.{made.namespace}.svc.cluster.local/catalog",
        "oauth2_server_uri": TOKENS,
        "client_id": "pipeline",
        "flush_age_s": 0,
        "max_events": 100,
        "heap": "1g",
        "maintenance": False,
        "log_file": "/tmp/spark.log",
    }
    refs = {
        "secrets.keys": {"name": "keys", "key": "keys"},
        "pipeline.client_secret": {"name": "pipeline", "key": "secret"},
    }
    return OWN | {
        "config": OWN["config"] | {"pipeline": pipeline},
        "secretRefs": OWN["secretRefs"] | refs,
        "sparkImage": {"repository": "localhost/lakewarden-spark", "pullPolicy": "Never"},
        "pipeline": {
            "enabled": True,
            "master": "kubernetes",
            "resources": SMALL | {"limits": {"memory": "3Gi"}},
            "executors": {"cores": 1, "requestCores": "50m", "memory": "768m", "memoryOverhead": "768m"},
            # what is not flushed stays in the log
            "terminationGracePeriodSeconds": 5,
        },
    }


def _prepared(stream: Stream, store: S3Store) -> Stream:
    """With the warehouse `lake`, in which `engine` has an engine's rights, and the namespace `shop`."""
    made = stream.release
    owner, engine = (
        f"kubernetes~{made.kubectl('get', 'serviceaccount', each, '-o', 'jsonpath={.metadata.uid}')}"
        for each in ("owner", "engine")
    )
    made.execute("lakewarden", "bootstrap", "--admin", owner)
    token = made.token("owner")

    def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
        status, answer = made.ask("POST", path, body, token=token)
        assert status in {200, 201, 204}, answer
        return answer

    storage = {"storage-profile": store.profile(issues_keys=True), "storage-credential": store.credential}
    warehouse = ask("/management/v1/warehouse", {"warehouse-name": "lake", **storage})["id"]
    ask("/management/v1/user", {"id": engine, "name": "engine", "user-type": "application", "update-if-exists": True})
    writes = [{"privilege": each, "principal": {"user": engine}} for each in ENGINE_PRIVILEGES]
    ask(f"/management/v1/warehouse/{warehouse}/grants", {"writes": writes, "deletes": []})
    shop = {"namespace": ["shop"], "properties": {"lakewarden.cdc.mode": "both"}}
    ask(f"/catalog/v1/{warehouse}/namespaces", shop)
    return stream


def test_a_deleted_executor_costs_nothing_but_time_and_none_is_left(stream: Stream) -> None:
    made = stream.release
    events: list[Event] = [dict(each, table="shop.t") for each in random_changes(CHANGES, seed=19)]
    half = CHANGES // 2
    stream.send(events[:half])
    first = stream.await_executors()
    _check_rights(made, executor=min(first))
    stream.await_flushed(1)
    stream.send(events[half:])
    deleted = min(stream.executors())
    made.kubectl("delete", "pod", deleted, "--grace-period=0", "--force")
    last, flushed = stream.positions()
    assert flushed < last
    stream.await_flushed(last)
    assert len(stream.await_executors(without=deleted)) == 2

    found = stream.rows("shop.t", "shop.t_current")
    assert sorted(row["_cdc_sequence"] for row in found["shop.t"]) == list(range(1, CHANGES + 1))
    mirror = {row["_cdc_row_id"]: row for row in found["shop.t_current"]}
    assert len(mirror) == len(found["shop.t_current"])
    expected = replayed(events)
    assert {row: values["n"] for row, values in mirror.items()} == {row: each["n"] for row, each in expected.items()}

    made.helm("uninstall", made.name, "--wait", "--timeout", WITHIN)
    is_gone = lambda: not any("lakewarden" in each for each in made.objects())  # noqa: E731
    until(is_gone, "the end of everything", made.node, within_s=PATIENCE_S)


def _check_rights(made: Release, *, executor: str) -> None:
    """The driver may make pods in its namespace and nothing else; executors have no account and no secret."""
    account = f"system:serviceaccount:{made.namespace}:{made.full_name}-pipeline"

    def can(*what: str, namespace: str = made.namespace) -> bool:
        asked = ("auth", "can-i", *what, f"--as={account}", "--namespace", namespace)
        return made.node.kubectl(*asked, check=False).split()[0] == "yes"

    assert all(can(verb, "pods") for verb in ("create", "get", "list", "watch", "delete"))
    for what in ("secrets", "configmaps", "services", "deployments.apps", "serviceaccounts", "roles.rbac"):
        assert not any(can(verb, what) for verb in ("get", "list", "create", "delete")), what
    assert not can("create", "pods", "--subresource=exec")
    assert not can("patch", "pods")
    assert not can("create", "pods", namespace="default")

    (pod,) = [each for each in made.pods("executor") if each["metadata"]["name"] == executor]
    (owner,) = pod["metadata"]["ownerReferences"]
    assert owner["name"] in made.ready("pipeline")
    (container,) = pod["spec"]["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"]["memory"] == "1536Mi"
    names = {each["name"] for each in container["env"]}
    assert not any(each.startswith(("LAKEWARDEN", "AWS")) for each in names)
    asked = "id -u; touch /written 2>&1; ls /var/run/secrets 2>&1; true"
    said = made.kubectl("exec", executor, "--", "sh", "-c", asked)
    assert said.splitlines()[0] == "65532"
    assert "Read-only file system" in said
    assert "No such file" in said
