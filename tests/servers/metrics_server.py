"""Kubernetes' metrics-server beside a node: autoscalers read there what pods use; built from source once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from standalone.go_programs import GoProgram, provide
from standalone.process import ManagedProcess
from tests.servers.kubernetes_node import ADDRESS, Node, until

METRICS_SERVER: Final = GoProgram("metrics-server", "metrics-server", "sigs.k8s.io/metrics-server/cmd/metrics-server")
_PORT: Final = 4443
_NAME: Final = {"name": "metrics-server", "namespace": "kube-system"}
_MANIFESTS: Final[tuple[dict[str, Any], ...]] = (
    {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _NAME,
        "spec": {"ports": [{"name": "https", "port": 443, "targetPort": _PORT}]},
    },
    {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": _NAME | {"labels": {"kubernetes.io/service-name": "metrics-server"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": _PORT}],
        "endpoints": [{"addresses": [ADDRESS]}],
    },
    {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {
            "service": _NAME,
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    },
)


@contextmanager
def start(node: Node) -> Iterator[None]:
    """The node's API answers for `metrics.k8s.io`. Raises NodeFailed."""
    kubeconfig = node.kubeconfig
    flags = [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={ADDRESS}",
        f"--secure-port={_PORT}",
        f"--cert-dir={node.directory / 'metrics-server'}",
        "--kubelet-insecure-tls",
        "--kubelet-preferred-address-types=InternalIP",
        "--metric-resolution=15s",
    ]
    nodes = "/apis/metrics.k8s.io/v1beta1/nodes"
    log = node.directory / "metrics-server.log"
    process = ManagedProcess("metrics-server", [*node.enter, provide(METRICS_SERVER), *flags], log=log, grace_s=15.0)
    with process:
        node.apply(*_MANIFESTS)
        try:
            until(lambda: '"cpu"' in node.kubectl("get", "--raw", nodes, check=False), "metrics-server", node, process)
            yield
        finally:
            # namespaces are not removed while an API that is registered does not answer
            node.kubectl("delete", "apiservice", "v1beta1.metrics.k8s.io", check=False)
