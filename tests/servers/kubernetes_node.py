"""A real Kubernetes node for tests: a control plane, a kubelet with containerd and runc, and kube-proxy.

Everything runs in a private network namespace from which nothing leads out; `enter` is the command that runs others
there. It needs root, and the packages of `PACKAGES` (Debian's names). `cluster_dns` answers for the names of services.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import yaml

from standalone.go_programs import GoProgram, pinned_version, provide
from standalone.process import ManagedProcess
from tests.servers import enclosure
from tests.servers.kubernetes import ETCD, FRONT_PROXY, KUBE_APISERVER, write_credentials

PACKAGES: Final = ("containerd", "runc", "containernetworking-plugins", "iptables", "conntrack", "iproute2")

_VERSION: Final = "k8s.io/component-base/version"
_STAMPS: Final = {
    f"{_VERSION}.gitVersion": pinned_version("node", "k8s.io/kubernetes"),
    f"{_VERSION}.gitTreeState": "clean",
}
CONTROLLERS, SCHEDULER, KUBELET, PROXY = (
    GoProgram(name, "node", f"k8s.io/kubernetes/cmd/{name}", stamps=_STAMPS)
    for name in ("kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")
)
PROGRAMS: Final = (CONTROLLERS, SCHEDULER, KUBELET, PROXY)

NODE: Final = "lw-node"
ADDRESS: Final = "10.77.0.1"
_SERVICES: Final = "10.96.0.0/16"
_PODS: Final = "10.244.0.0/24"
_PORT: Final = 6443
_PATIENCE_S: Final = 120.0
_USERS: Final = {
    "admin": ("admin", "system:masters"),
    "controllers": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "kubelet": (f"system:node:{NODE}", "system:nodes"),
    "proxy": ("system:kube-proxy", ""),
}


class NodeFailed(AssertionError):
    """It did not start, or a program in it failed; the message holds what it said."""


@dataclass(frozen=True)
class Node:
    """A running cluster of one node."""

    directory: Path
    network: enclosure.Network

    @property
    def enter(self) -> tuple[str, ...]:
        """What a command begins with that runs where the cluster is."""
        return self.network.enter

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.directory / "admin.kubeconfig"

    @property
    def socket(self) -> Path:
        """Of containerd."""
        return self.directory / "containerd.sock"

    def run(self, *command: str | Path, check: bool = True, timeout_s: float = 120.0) -> str:
        """What it prints; NodeFailed if it fails, unless `check` is off."""
        done = subprocess.run(
            [*self.enter, *command],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
        )
        if check and done.returncode != 0:
            raise NodeFailed(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
        return done.stdout + ("" if done.returncode == 0 else done.stderr)

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        return self.run("kubectl", *arguments, check=check)

    def apply(self, *manifests: Mapping[str, Any], namespace: str = "") -> None:
        """Make or change these objects; those that name no namespace are of this one."""
        with NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump_all([dict(each) for each in manifests], file)
            file.flush()
            where = ("--namespace", namespace) if namespace else ()
            self.kubectl(*where, "apply", "-f", file.name)

    def load_image(self, archive: Path) -> None:
        """Make an image of `docker save` or an OCI archive known to the kubelet."""
        self.run("ctr", "-a", self.socket, "-n", "k8s.io", "images", "import", archive, timeout_s=1200)


@contextmanager
def start(images: Sequence[Path] = ()) -> Iterator[Node]:
    """A ready node that has `images`, forgotten at the end. Raises NodeFailed."""
    programs = {each.name: provide(each) for each in (ETCD, KUBE_APISERVER, *PROGRAMS)}
    missing = [each for each in ("containerd", "runc", "iptables", "conntrack", "ip") if shutil.which(each) is None]
    if os.geteuid() != 0 or missing:
        raise NodeFailed(f"A node needs root and {', '.join(PACKAGES)}; missing here: {', '.join(missing) or 'root'}")
    directory = Path(tempfile.mkdtemp(prefix="lw-node-"))
    with ExitStack() as stack:
        stack.callback(enclosure.remove_folder, directory)
        stack.callback(_remove_pod_networks)
        node = Node(directory, stack.enter_context(enclosure.network()))
        _connect(node)
        cgroup = node.network.name
        stack.callback(enclosure.remove_cgroups, (cgroup, "k8s.io"))
        _make_cgroups(cgroup)
        _credentials(directory)
        _configure(directory, cgroup=cgroup)
        for name, command, is_ready in _commands(node, programs):
            _started(stack, node, name, command, is_ready)
        _pause_image(node)
        for image in images:
            node.load_image(image)
        until(lambda: "Ready" in node.kubectl("get", "node", NODE, check=False).split(), "the node", node)
        stack.callback(_end_pods, node)
        yield node


def _commands(node: Node, programs: Mapping[str, Path]) -> Iterator[tuple[str, list[str | Path], Callable[[], bool]]]:
    """The programs in their order, each with a look whether the next one may start."""
    at = node.directory
    local = "http://127.0.0.1:2379"
    yield "containerd", [_found("containerd"), "-c", at / "containerd.toml"], node.socket.exists
    yield "etcd", [programs["etcd"], f"--data-dir={at / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn"], lambda: True
    flags = {
        "etcd-servers": local,
        "bind-address": ADDRESS,
        "advertise-address": ADDRESS,
        "secure-port": _PORT,
        "tls-cert-file": at / "api.crt",
        "tls-private-key-file": at / "api.key",
        "client-ca-file": at / "ca.crt",
        "token-auth-file": at / "tokens.csv",
        "authorization-mode": "Node,RBAC",
        "service-cluster-ip-range": _SERVICES,
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": at / "accounts.pub",
        "service-account-signing-key-file": at / "accounts.key",
        "kubelet-preferred-address-types": "InternalIP",
        "enable-admission-plugins": "NodeRestriction",
        # for servers of other APIs, such as that of metrics
        "requestheader-client-ca-file": at / "ca.crt",
        "requestheader-allowed-names": FRONT_PROXY,
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": at / "proxy.crt",
        "proxy-client-key-file": at / "proxy.key",
        "profiling": "false",
    }
    is_up = lambda: node.kubectl("get", "--raw", "/readyz", check=False) == "ok"  # noqa: E731
    yield "kube-apiserver", [programs["kube-apiserver"], *_flags(flags)], is_up
    flags = {
        "kubeconfig": at / "controllers.kubeconfig",
        "service-account-private-key-file": at / "accounts.key",
        "root-ca-file": at / "ca.crt",
        # autoscalers wait for minutes before they believe what a new pod uses
        "horizontal-pod-autoscaler-cpu-initialization-period": "20s",
        "horizontal-pod-autoscaler-initial-readiness-delay": "5s",
        "use-service-account-credentials": "true",
        "leader-elect": "false",
        "bind-address": "127.0.0.1",
        "profiling": "false",
    }
    yield "kube-controller-manager", [programs["kube-controller-manager"], *_flags(flags)], lambda: True
    flags = {"kubeconfig": at / "scheduler.kubeconfig", "leader-elect": "false", "bind-address": "127.0.0.1"}
    yield "kube-scheduler", [programs["kube-scheduler"], *_flags(flags)], lambda: True
    flags = {
        "config": at / "kubelet.yaml",
        "kubeconfig": at / "kubelet.kubeconfig",
        "root-dir": at / "kubelet",
        "cert-dir": at / "kubelet-pki",
        "hostname-override": NODE,
        "node-ip": ADDRESS,
    }
    yield "kubelet", [programs["kubelet"], *_flags(flags)], lambda: True
    flags = {
        "kubeconfig": at / "proxy.kubeconfig",
        "hostname-override": NODE,
        "proxy-mode": "iptables",
        "bind-address": ADDRESS,
        # what may not be written in a namespace
        "conntrack-max-per-core": "0",
        "conntrack-tcp-timeout-established": "0s",
        "conntrack-tcp-timeout-close-wait": "0s",
    }
    yield "kube-proxy", [programs["kube-proxy"], *_flags(flags)], lambda: True
    names: list[str | Path] = [sys.executable, "-m", "tests.servers.cluster_dns", ADDRESS, node.kubeconfig]
    yield "cluster-dns", names, lambda: True


def _flags(values: dict[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


def _started(
    stack: ExitStack, node: Node, name: str, command: Sequence[str | Path], is_ready: Callable[[], bool]
) -> None:
    process = ManagedProcess(name, [*node.enter, *command], log=node.directory / f"{name}.log", grace_s=15.0)
    stack.enter_context(process)
    until(is_ready, name, node, process)


def until(
    is_true: Callable[[], bool],
    what: str,
    node: Node,
    process: ManagedProcess | None = None,
    *,
    within_s: float = _PATIENCE_S,
) -> None:
    """Wait for something in the cluster. Raises NodeFailed with the ends of all logs."""
    deadline = time.monotonic() + within_s
    while not is_true():
        if time.monotonic() > deadline or (process is not None and process.exited):
            logs = "\n".join(
                f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}"
                for log in sorted(node.directory.glob("*.log"))
            )
            raise NodeFailed(f"{what} is not ready:\n{logs}")
        time.sleep(0.2)


def _connect(node: Node) -> None:
    """An address, and a default route that ends nowhere."""
    inside = node.enter
    enclosure.run(*inside, "ip", "link", "add", "lwnode", "type", "veth", "peer", "name", "lwpeer")
    enclosure.run(*inside, "ip", "addr", "add", f"{ADDRESS}/24", "dev", "lwnode")
    enclosure.run(*inside, "ip", "link", "set", "lwnode", "up")
    enclosure.run(*inside, "ip", "link", "set", "lwpeer", "up")
    enclosure.run(*inside, "ip", "route", "add", "default", "via", "10.77.0.254", "dev", "lwnode")
    enclosure.run(*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=1")


def _remove_pod_networks() -> None:
    """Those that CNI made for pods which containerd was not asked to end; the pods of another node have processes."""
    for path in Path("/run/netns").glob("cni-*"):
        listed = subprocess.run(["ip", "netns", "pids", path.name], check=False, capture_output=True)
        if not listed.stdout:
            subprocess.run(["ip", "netns", "del", path.name], check=False, capture_output=True)


def _make_cgroups(name: str) -> None:
    """The kubelet's root in each hierarchy of version 1; with version 2 it makes its own.

    Each node has its own: a kubelet ends what it does not know below its root.
    """
    for hierarchy in enclosure.HIERARCHIES:
        if hierarchy != "unified" and (enclosure.CGROUPS / hierarchy).is_dir():
            (enclosure.CGROUPS / hierarchy / name).mkdir(exist_ok=True)
    for file in ("cpuset.cpus", "cpuset.mems"):
        if (whole := enclosure.CGROUPS / "cpuset" / file).exists():
            (enclosure.CGROUPS / "cpuset" / name / file).write_text(whole.read_text())


def _credentials(directory: Path) -> None:
    tokens = {name: secrets.token_hex(16) for name in _USERS}
    lines = [f'{tokens[name]},{user},{name},"{group}"' for name, (user, group) in _USERS.items()]
    write_credentials(
        directory, tokens="\n".join(lines) + "\n", addresses=(ADDRESS, "10.96.0.1", "kubernetes.default.svc")
    )
    for name, token in tokens.items():
        cluster = {"server": f"https://{ADDRESS}:{_PORT}", "certificate-authority": str(directory / "ca.crt")}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lw", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "lw", "context": {"cluster": "lw", "user": name}}],
            "current-context": "lw",
        }
        path = directory / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))


def _configure(at: Path, *, cgroup: str) -> None:
    (at / "cni").mkdir()
    (at / "containerd.toml").write_text(
        f"""version = 2
root = "{at}/images"
state = "{at}/state"
[grpc]
  address = "{at}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/lw-pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{_found("runc")}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{at}/cni"
"""
    )
    ranges = {"type": "host-local", "dataDir": str(at / "addresses"), "ranges": [[{"subnet": _PODS}]]}
    bridge = {"type": "bridge", "bridge": "lwbr0", "isGateway": True, "ipMasq": True, "hairpinMode": True}
    plugins = [
        bridge | {"ipam": ranges | {"routes": [{"dst": "0.0.0.0/0"}]}},
        {"type": "portmap", "capabilities": {"portMappings": True}},
    ]
    network = {"cniVersion": "1.0.0", "name": "lw", "plugins": plugins}
    (at / "cni" / "10-lw.conflist").write_text(json.dumps(network))
    (at / "resolv.conf").write_text(f"nameserver {ADDRESS}\n")
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "enforceNodeAllocatable": [],
        "containerRuntimeEndpoint": f"unix://{at}/containerd.sock",
        "address": ADDRESS,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "podCIDR": _PODS,
        "clusterDNS": [ADDRESS],
        "clusterDomain": "cluster.local",
        "failSwapOn": False,
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "podLogsDir": f"{at}/podlogs",
        "resolvConf": f"{at}/resolv.conf",
        "shutdownGracePeriod": "0s",
    }
    (at / "kubelet.yaml").write_text(yaml.safe_dump(kubelet))


def _pause_image(node: Node) -> None:
    """The image that holds a pod's namespaces, without a registry: one static program that sleeps."""
    folder = node.directory / "pause"
    folder.mkdir()
    store: Sequence[str | Path] = ["--root", folder / "store", "--runroot", folder / "run", "--storage-driver", "vfs"]
    shutil.copy(_found("busybox"), folder / "busybox")
    (folder / "Containerfile").write_text(
        'FROM scratch\nCOPY busybox /busybox\nENTRYPOINT ["/busybox", "sleep", "2147483647"]\n'
    )
    image, archive = "localhost/lw-pause:1", folder / "pause.tar"
    enclosure.run("buildah", *store, "bud", "--quiet", "--isolation", "chroot", "-t", image, folder)
    enclosure.run("buildah", *store, "push", "--quiet", image, f"docker-archive:{archive}:{image}")
    node.load_image(archive)


def _end_pods(node: Node) -> None:
    """While the kubelet is still there: their processes would survive it."""
    node.kubectl("delete", "namespace", "--all", "--wait=false", check=False)
    node.kubectl("delete", "pods", "--all", "--all-namespaces", "--force", "--grace-period=0", check=False)
    for task in node.run("ctr", "-a", node.socket, "-n", "k8s.io", "tasks", "list", "-q", check=False).split():
        node.run("ctr", "-a", node.socket, "-n", "k8s.io", "tasks", "rm", "--force", task, check=False)
    enclosure.end_shims(node.socket)


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise NodeFailed(f"{program} is missing: apt-get install {' '.join(PACKAGES)} buildah busybox-static")
    return path
