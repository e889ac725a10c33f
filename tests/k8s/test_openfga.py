"""A release whose rights OpenFGA decides: a wrong store, and one that is gone, keep new pods waiting, and only those."""

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from standalone.go_programs import provide
from standalone.process import ManagedProcess
from tests.k8s.lake import Databases
from tests.k8s.release import OWN, Release
from tests.servers.kubernetes_node import ADDRESS, Node, until
from tests.servers.openfga import OPENFGA

pytestmark = pytest.mark.timeout(1800)
HTTP, GRPC = f"{ADDRESS}:18080", f"{ADDRESS}:18081"
ONLY = {"playground-enabled": "false", "metrics-enabled": "false", "log-format": "json", "log-level": "warn"}


@pytest.fixture(scope="module")
def openfga(node: Node) -> Iterator[str]:
    """On the node, where pods reach it; in memory."""
    flags = {"http-addr": HTTP, "grpc-addr": GRPC, **ONLY}
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--{name}={value}" for name, value in flags.items()]
        command: list[str | Path] = [*node.enter, provide(OPENFGA), "run", *options]
        with ManagedProcess("openfga", command, log=Path(folder) / "openfga.log") as process:
            url = f"http://{HTTP}"
            serving = lambda: "SERVING" in node.run("curl", "-s", f"{url}/healthz", check=False)  # noqa: E731
            until(serving, "OpenFGA", node, process)
            yield url


def test_a_wrong_store_or_model_is_said_before_a_pod_is_ready(
    release: Callable[[str], Release], databases: Databases, openfga: str
) -> None:
    made = release("rights")
    config = OWN["config"] | {"authorization": {"backend": "openfga"}, "openfga": {"api_url": openfga}}
    own = OWN | {"config": config}
    made.install("--set", "migrations.mode=init", values=own)
    (first,) = made.ready()
    made.execute("lakewarden", "bootstrap", "--admin", "oidc~first")

    none = ("--set", "migrations.mode=none")
    made.upgrade(*none, "--set", "config.openfga.store=another", values=own, wait=False)
    made.until_said("OpenFGA cannot be used: the authorization model is not in it yet", container="database")
    assert made.ready()[first]

    databases.run("update openfga_store set model_hash = model_hash || 'x'", database="rights")
    made.upgrade(*none, "--set", "server.podAnnotations.model=another", values=own, wait=False)
    made.until_said("OpenFGA cannot be used: the authorization model in it is another version's", container="database")
    databases.run("update openfga_store set model_hash = left(model_hash, -1)", database="rights")

    (store,) = json.loads(made.node.run("curl", "-s", f"{openfga}/stores"))["stores"]
    made.node.run("curl", "-sf", "-X", "DELETE", f"{openfga}/stores/{store['id']}")
    made.upgrade(*none, "--set", "server.podAnnotations.restarted=yes", values=own, wait=False)
    gone = "OpenFGA cannot be used: it no longer has this installation's store or model: run `lakewarden migrate` first"
    made.until_said(gone, container="database")

    # a migration makes the store again; what it is to hold is an operator's command, given in the pod that waits
    made.upgrade(
        "--set", "migrations.mode=job", "--set", "server.podAnnotations.restarted=again", values=own, wait=False
    )
    waits = made.until_said("run `lakewarden openfga reconcile` first", container="database")
    assert made.ready()[first]
    # the container ends as soon as nothing is missing any more, whether or not the command in it has
    said = made.kubectl("exec", waits, "-c", "database", "--", "lakewarden", "openfga", "reconcile", check=False)
    assert "were missing in OpenFGA" in said
    made.roll_out()
    assert list(made.ready().values()) == [True]
