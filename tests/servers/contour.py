"""Contour with Envoy beside a node: an ingress controller, and an implementation of the Gateway API."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from standalone.go_programs import TOOLS, GoProgram, find_go, pinned_version, provide
from standalone.process import ManagedProcess
from tests.servers import envoy
from tests.servers.kubernetes_node import Node, NodeFailed

_MODULE: Final = "github.com/projectcontour/contour"
CONTOUR: Final = GoProgram("contour", "contour", f"{_MODULE}/cmd/contour")
NAMESPACE: Final = "projectcontour"
HTTP_PORT: Final = 8080
HTTPS_PORT: Final = 8443
"""Envoy's, of all addresses of the node: those of the gateway's listeners and 8000."""
GATEWAY: Final = {"name": "contour", "namespace": NAMESPACE}
_XDS_PORT: Final = 8001
_OBJECTS: Final[tuple[dict[str, Any], ...]] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "contour"},
        "spec": {"controller": "projectcontour.io/ingress-controller"},
    },
    {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": "contour"},
        "spec": {"controllerName": "projectcontour.io/gateway-controller"},
    },
    {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": GATEWAY,
        "spec": {
            "gatewayClassName": "contour",
            "listeners": [
                {"name": "http", "protocol": "HTTP", "port": 80, "allowedRoutes": {"namespaces": {"from": "All"}}},
                {
                    "name": "ingress",
                    "protocol": "projectcontour.io/https",
                    "port": 443,
                    "allowedRoutes": {"namespaces": {"from": "All"}},
                },
            ],
        },
    },
)


@contextmanager
def start(node: Node) -> Iterator[None]:
    """Ingresses of the class `contour` and routes of `GATEWAY` are served at the node's address. Raises NodeFailed."""
    at = node.directory / "contour"
    at.mkdir()
    program = provide(CONTOUR)
    for name in ("contour/01-crds.yaml", "gateway/00-crds.yaml"):
        node.run("kubectl", "apply", "--server-side", "-f", _source() / "examples" / name)
    node.apply(*_OBJECTS)
    (at / "contour.yaml").write_text(yaml.safe_dump({"gateway": {"gatewayRef": GATEWAY}}))
    bootstrap = at / "envoy.json"
    addresses = ("--xds-address=127.0.0.1", f"--xds-port={_XDS_PORT}")
    admin = f"--admin-address={at / 'admin.sock'}"
    node.run(program, "bootstrap", bootstrap, *addresses, admin)
    serve: list[str | Path] = [
        *("serve", f"--kubeconfig={node.kubeconfig}", f"--config-path={at / 'contour.yaml'}", *addresses),
        *("--insecure", "--disable-leader-election", "--ingress-class-name=contour"),
    ]
    proxy: list[str | Path] = [
        "-c",
        bootstrap,
        "--service-cluster",
        NAMESPACE,
        "--service-node",
        "envoy",
        "--log-level",
        "warn",
    ]
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, at, ignore_errors=True)
        for name, command in (("contour", [program, *serve]), ("envoy", [envoy.provide(), *proxy])):
            log = node.directory / f"{name}.log"
            stack.enter_context(ManagedProcess(name, [*node.enter, *command], log=log, grace_s=15.0))
        yield


def _source() -> Path:
    """Where Go keeps the module, with the definitions of Contour's and of the gateways' resources."""
    version = pinned_version("contour", _MODULE)
    command: list[str | Path] = [find_go() or "go", "mod", "download", "-json", f"{_MODULE}@{version}"]
    done = subprocess.run(command, cwd=TOOLS / "contour", capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "{}")
    if done.returncode != 0 or "Dir" not in found:
        raise NodeFailed(f"Contour's module: {done.stdout}{done.stderr}")
    return Path(found["Dir"])
