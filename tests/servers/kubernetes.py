"""A real Kubernetes API server for tests: etcd and kube-apiserver on 127.0.0.1, with a throw-away authority and RBAC.

There are no nodes and no controllers: namespaces, service accounts, their tokens, TokenReviews and bindings are real,
and nothing else is needed of it.
"""

import base64
import json
import os
import secrets
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from standalone.go_programs import GoProgram, pinned_version, provide
from standalone.ports import HOST, free_ports
from standalone.process import ManagedProcess

_MODULE = "kubernetes"
_VERSION = pinned_version(_MODULE, "k8s.io/kubernetes")
_STAMPED = "k8s.io/component-base/version"
KUBE_APISERVER: Final = GoProgram(
    "kube-apiserver",
    _MODULE,
    "k8s.io/kubernetes/cmd/kube-apiserver",
    # as a released one: clients look at the version
    stamps={f"{_STAMPED}.gitVersion": _VERSION, f"{_STAMPED}.gitTreeState": "clean"},
)
ETCD: Final = GoProgram("etcd", _MODULE, "go.etcd.io/etcd/server/v3")

# as in most clusters not the address that the API server is reached by
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
FRONT_PROXY: Final = "front-proxy"
_READY_WITHIN_S = 90.0
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


class KubernetesFailed(AssertionError):
    """It did not start, or refused a request; the message holds what it said."""


@dataclass(frozen=True)
class ServiceAccount:
    namespace: str
    name: str
    uid: str

    @property
    def username(self) -> str:
        """Its name for RBAC and the `sub` of its tokens."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.name}"


@dataclass
class KubernetesCluster:
    """A running control plane. `admin_token` may do everything, `person_token` is of a user with no rights."""

    directory: Path
    port: int
    etcd: ManagedProcess
    etcd_url: str
    admin_token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    person_token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    _api_server: ManagedProcess | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The API server's address; its certificate is for it and signed by `ca_file`."""
        return f"https://{HOST}:{self.port}"

    @property
    def ca_file(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def api_server(self) -> ManagedProcess:
        if self._api_server is None:
            raise KubernetesFailed("the API server is stopped: call `start_api_server`.")
        return self._api_server

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One request by the administrator; `KubernetesFailed` for any answer from 400 on."""
        answer = self._request(method, path, body=body)
        if not answer.ok:
            raise KubernetesFailed(f"{method} {path} answered {answer.status_code}: {answer.text}")
        return dict(answer.json())

    def create_namespace(self, name: str) -> None:
        self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def create_service_account(self, namespace: str, name: str) -> ServiceAccount:
        """A new account in a namespace that exists; a deleted one's name may be used again."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        created = self.call("POST", path, {"metadata": {"name": name}})
        return ServiceAccount(namespace, name, created["metadata"]["uid"])

    def delete_service_account(self, account: ServiceAccount) -> None:
        self.call("DELETE", account.path)

    def bind_cluster_role(self, role: str, account: ServiceAccount) -> None:
        """Let the account do what the cluster role allows, in the whole cluster.

        A server that reviews tokens needs `system:auth-delegator`. One that fetches the cluster's keys needs
        `system:service-account-issuer-discovery`, which every service account has unless it was taken away.
        """
        body = {
            "metadata": {"name": f"{account.namespace}-{account.name}-{role.replace(':', '-')}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": account.namespace, "name": account.name}],
        }
        self.call("POST", f"{_RBAC}/clusterrolebindings", body)

    def token(self, account: ServiceAccount, *, audience: str = ISSUER, lifetime_s: int = 600) -> str:
        """A token from the TokenRequest API, as a projected volume holds it. Less than 600 s are refused."""
        spec = {"audiences": [audience], "expirationSeconds": lifetime_s}
        return str(self.call("POST", f"{account.path}/token", {"spec": spec})["status"]["token"])

    def signed_again(
        self, token: str, claims: Mapping[str, object] | None = None, *, key: rsa.RSAPrivateKey | None = None
    ) -> str:
        """The token with some other claims, rightly signed by the cluster's key (what only the cluster could make), or by
        another `key` in its name."""
        header, payload, _ = token.split(".")
        changed = json.loads(_decode(payload)) | (claims or {})
        signed = f"{header}.{_encode(json.dumps(changed).encode())}"
        signature = (key or self._accounts_key()).sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encode(signature)}"

    def start_api_server(self) -> None:
        """Start it (also again: on the same port, with what etcd holds) and wait until it serves.

        `KubernetesFailed` with its words if it or etcd ends, or if it is not ready in time.
        """
        self._api_server = ManagedProcess(
            "kube-apiserver",
            [provide(KUBE_APISERVER), *self._flags()],
            log=self.directory / "kube-apiserver.log",
            directory=self.directory,
            grace_s=20.0,
        )
        self._api_server.start()
        deadline = time.monotonic() + _READY_WITHIN_S
        while not self._is_ready():
            for process in (self.etcd, self._api_server):
                if process.exited or time.monotonic() > deadline:
                    raise KubernetesFailed(
                        f"{process.name} {process.ended()}, not ready in time:\n{process.log_text()}"
                    )
            time.sleep(0.1)

    def stop_api_server(self) -> None:
        """End it; connections to its port are refused from now on. Twice does no harm."""
        if self._api_server is not None:
            self._api_server.stop()
            self._api_server = None

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """The API server accepts connections but says nothing (SIGSTOP)."""
        pid = self.api_server.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _accounts_key(self) -> rsa.RSAPrivateKey:
        key = serialization.load_pem_private_key((self.directory / "accounts.key").read_bytes(), password=None)
        assert isinstance(key, rsa.RSAPrivateKey)
        return key

    def _is_ready(self) -> bool:
        try:
            return self._request("GET", "/readyz").ok
        except requests.RequestException:
            return False

    def _request(self, method: str, path: str, *, body: Mapping[str, Any] | None = None) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.admin_token}"}
        url = f"{self.url}{path}"
        return requests.request(method, url, json=body, headers=headers, verify=str(self.ca_file), timeout=30)

    def _flags(self) -> list[str]:
        at = self.directory
        return [
            f"--etcd-servers={self.etcd_url}",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            f"--secure-port={self.port}",
            # the address of the service `kubernetes` may not be a loopback one
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={at / 'api.crt'}",
            f"--tls-private-key-file={at / 'api.key'}",
            f"--token-auth-file={at / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-signing-key-file={at / 'accounts.key'}",
            f"--service-account-key-file={at / 'accounts.pub'}",
            "--profiling=false",
        ]


def build() -> None:
    """Have the programs ready; the first time on a machine that takes minutes, and is said on stderr."""
    provide(ETCD)
    provide(KUBE_APISERVER)


@contextmanager
def start() -> Iterator[KubernetesCluster]:
    """A running cluster of its own, stopped and forgotten at the end; its programs are built where they are missing."""
    build()
    with tempfile.TemporaryDirectory(prefix="lw-kubernetes-") as name:
        port, client_port, peer_port = free_ports(3)
        etcd_url = f"http://{HOST}:{client_port}"
        etcd = _etcd(Path(name), url=etcd_url, peer_url=f"http://{HOST}:{peer_port}")
        cluster = KubernetesCluster(Path(name), port, etcd, etcd_url)
        _write_credentials(cluster)
        with etcd:
            try:
                cluster.start_api_server()
                yield cluster
            finally:
                cluster.stop_api_server()


def _etcd(directory: Path, *, url: str, peer_url: str) -> ManagedProcess:
    flags = [
        "--name=lw",
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=lw={peer_url}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
    return ManagedProcess("etcd", [provide(ETCD), *flags], log=directory / "etcd.log", directory=directory)


def _write_credentials(cluster: KubernetesCluster) -> None:
    # token, user, uid, groups
    tokens = f"{cluster.admin_token},admin,1,system:masters\n{cluster.person_token},person,2\n"
    write_credentials(cluster.directory, tokens=tokens)


def write_credentials(directory: Path, *, tokens: str, addresses: Sequence[str] = (HOST,)) -> None:
    """An authority with the API server's certificate for `addresses`, the key of service account tokens, and `tokens`.

    `proxy` is the API server's identity towards the servers of other APIs.
    """
    authority = _certificate("lakewarden test authority", key := ec.generate_private_key(ec.SECP256R1()))
    serving_key = ec.generate_private_key(ec.SECP256R1())
    serving = _certificate("kube-apiserver", serving_key, issued_by=(authority, key), addresses=addresses)
    proxy_key = ec.generate_private_key(ec.SECP256R1())
    proxy = _certificate(
        FRONT_PROXY,
        proxy_key,
        issued_by=(authority, key),
        addresses=(FRONT_PROXY,),
        purpose=ExtendedKeyUsageOID.CLIENT_AUTH,
    )
    accounts_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = accounts_key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    files = {
        "ca.crt": authority.public_bytes(serialization.Encoding.PEM),
        "api.crt": serving.public_bytes(serialization.Encoding.PEM),
        "api.key": _pem(serving_key),
        "proxy.crt": proxy.public_bytes(serialization.Encoding.PEM),
        "proxy.key": _pem(proxy_key),
        "accounts.key": _pem(accounts_key),
        "accounts.pub": public,
        "tokens.csv": tokens.encode(),
    }
    for name, content in files.items():
        path = directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    *,
    issued_by: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None = None,
    addresses: Sequence[str] = (HOST,),
    purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH,
) -> x509.Certificate:
    """An authority's, or the certificate of a server at `addresses` that it issued; good for a day."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    issuer, issuer_key = (issued_by[0].subject, issued_by[1]) if issued_by else (subject, key)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issued_by is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(_key_usage(is_authority=issued_by is None), critical=True)
    )
    if issued_by is not None:
        names = x509.SubjectAlternativeName([_address(each) for each in addresses])
        builder = builder.add_extension(names, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _address(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _key_usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _decode(value: str) -> bytes:
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
