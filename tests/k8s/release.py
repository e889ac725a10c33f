"""A release of the chart on the node, and what tests do with it."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import yaml

from tests.servers.helm import CHART, helm
from tests.servers.kubernetes_node import Node, until

WITHIN: Final = "300s"
TRIAL: Final = CHART / "values" / "trial.yaml"
IMAGE: Final = {"image": {"repository": "localhost/lakewarden", "pullPolicy": "Never"}}
SMALL: Final = {"requests": {"cpu": "20m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}
OWN: Final[dict[str, Any]] = IMAGE | {
    "config": {"kubernetes": {"enabled": True, "audience": ["lakewarden"]}, "server": {"threads": 8, "processes": 1}},
    "secretRefs": {"database.url": {"name": "database", "key": "url"}},
    "server": {"replicas": 1, "resources": SMALL},
    "worker": {"enabled": False},
    "migrations": {"resources": SMALL},
}
"""A small release on a database of its own, without a worker."""
_NOT_OURS: Final = {"events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io"}


@dataclass(frozen=True)
class Release:
    """`name` is its namespace's, too."""

    node: Node
    name: str
    namespace: str

    def install(self, *arguments: str | Path, values: Mapping[str, Any] | None = None, wait: bool = True) -> None:
        self._apply("install", arguments, values or {}, wait=wait)

    def upgrade(self, *arguments: str | Path, values: Mapping[str, Any] | None = None, wait: bool = True) -> None:
        self._apply("upgrade", arguments, values or {}, wait=wait)

    def _apply(self, verb: str, arguments: tuple[str | Path, ...], values: Mapping[str, Any], *, wait: bool) -> None:
        with NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(dict(values), file)
            file.flush()
            waiting = ("--wait", "--timeout", WITHIN) if wait else ()
            self.helm(verb, self.name, CHART, *arguments, "-f", file.name, *waiting)

    def helm(self, *arguments: str | Path) -> str:
        where = ("--namespace", self.namespace, "--kubeconfig", self.node.kubeconfig)
        return helm(*arguments, *where, enter=self.node.enter)

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        return self.node.kubectl("--namespace", self.namespace, *arguments, check=check)

    def pods(self, component: str = "server") -> list[dict[str, Any]]:
        """Those that are to stay."""
        selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}"
        items: list[dict[str, Any]] = json.loads(self.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
        return [each for each in items if "deletionTimestamp" not in each["metadata"]]

    def ready(self, component: str = "server") -> dict[str, bool]:
        """Whether each pod is ready, by its name."""
        return {
            pod["metadata"]["name"]: any(
                each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", [])
            )
            for pod in self.pods(component)
        }

    def until_said(self, sentence: str, *, container: str = "lakewarden", component: str = "server") -> str:
        """Wait until a pod's container has said this; the pod's name."""
        speakers: list[str] = []

        def is_said() -> bool:
            names = [each["metadata"]["name"] for each in self.pods(component)]
            speakers[:] = [name for name in names if sentence in self.log(name, container)]
            return bool(speakers)

        until(is_said, f"{sentence!r} of {self.name}", self.node)
        return speakers[0]

    def log(self, pod: str, container: str = "lakewarden") -> str:
        return self.kubectl("logs", pod, "-c", container, check=False)

    def roll_out(self) -> None:
        """Wait until the servers are what was asked for last."""
        where = ("rollout", "status", f"deploy/{self.full_name}-server", f"--timeout={WITHIN}")
        self.node.run("kubectl", "--namespace", self.namespace, *where, timeout_s=330)

    def execute(self, *command: str, component: str = "server") -> str:
        return self.kubectl("exec", f"deploy/{self.full_name}-{component}", "-c", "lakewarden", "--", *command)

    @property
    def revision(self) -> str:
        """Of what is installed now, for `helm rollback`."""
        listed = json.loads(self.helm("list", "-o", "json"))
        (found,) = [str(each["revision"]) for each in listed if each["name"] == self.name]
        return found

    @property
    def full_name(self) -> str:
        """What the names of its objects begin with."""
        return f"{self.name}-lakewarden"

    @property
    def address(self) -> str:
        """Of its service, in the cluster."""
        return self.kubectl("get", "service", self.full_name, "-o", "jsonpath={.spec.clusterIP}")

    def token(self, account: str, *, audience: str = "lakewarden") -> str:
        """Of a service account, as a pod of its own would get it."""
        return self.kubectl("create", "token", account, "--audience", audience, "--duration", "1h").strip()

    def ask(
        self, method: str, path: str, body: object = None, *, token: str = "", address: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """The status and the answer of the service, or of the pod with this `address`."""
        sent = ["-H", f"Authorization: Bearer {token}"] if token else []
        sent += [] if body is None else ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        url = f"http://{address or self.address}{path}"
        said = self.node.run("curl", "-s", "-m", "60", "-X", method, *sent, "-w", "\n%{http_code}", url)
        content, _, status = said.rpartition("\n")
        return int(status), json.loads(content) if content else {}

    def objects(self) -> set[str]:
        """Everything in the namespace that somebody made, as `kind/name`, but for events and the like."""
        listed = self.kubectl("api-resources", "--verbs=list", "--namespaced", "-o", "name").split()
        kinds = ",".join(each for each in listed if each not in _NOT_OURS)
        return set(self.kubectl("get", kinds, "-o", "name", "--ignore-not-found").split())


def secret(release: Release, name: str, **values: str) -> None:
    """Make or replace a Secret in the release's namespace."""
    content = {each: base64.b64encode(value.encode()).decode() for each, value in values.items()}
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": content}
    apply(release, manifest)


def apply(release: Release, *manifests: Mapping[str, Any]) -> None:
    release.node.apply(*manifests, namespace=release.namespace)


def volume(name: str, folder: Path, *, claim: str = "", namespace: str = "") -> dict[str, Any]:
    """A volume on the node, kept for this claim: nothing here makes volumes on demand."""
    reference = {"namespace": namespace, "name": claim or name}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "capacity": {"storage": "10Gi"},
            "hostPath": {"path": str(folder)},
            "claimRef": reference,
        },
    }
