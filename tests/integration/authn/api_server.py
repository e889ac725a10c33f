"""A Kubernetes API server as far as authentication goes: reviews, discovery and keys, for those whom it knows."""

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from joserfc import jwt
from joserfc.jwk import RSAKey

from lakewarden.config import KubernetesConfig

ISSUER = "https://kubernetes.default.svc.cluster.local"
OWN_TOKEN = "own-token-1"
KEY = RSAKey.generate_key(2048, parameters={"use": "sig", "alg": "RS256", "kid": "cluster-1"})


class ApiServer(ThreadingHTTPServer):
    """`accounts` maps "ns/name" to its uid: one that is taken out is a deleted account."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.accounts = {"lake/spark": "5d3f0c1e-uid"}
        self.let_in = {OWN_TOKEN}
        self.may_review = True
        self.reviews: list[dict[str, Any]] = []
        self.fetched: list[str] = []
        self.status_override: dict[str, Any] | None = None
        self.key = KEY

    def token(self, account: str = "lake/spark", *, audience: object = "lakewarden", **changed: Any) -> str:
        namespace, name = account.split("/")
        claims = {
            "iss": ISSUER,
            "sub": f"system:serviceaccount:{namespace}:{name}",
            "aud": [audience] if isinstance(audience, str) else audience,
            "exp": int(time.time()) + 3600,
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": self.accounts.get(account, "gone")},
            },
        } | changed
        claims = {claim: value for claim, value in claims.items() if value is not None}
        return jwt.encode({"alg": "RS256", "kid": "cluster-1"}, claims, self.key)

    def review(self, spec: dict[str, Any]) -> dict[str, Any]:
        if self.status_override is not None:
            return self.status_override
        claims = jwt.decode(spec["token"], self.key).claims if spec["token"].count(".") == 2 else {}
        username = str(claims.get("sub"))
        account = "/".join(username.split(":")[2:])
        audiences = [each for each in spec.get("audiences", [ISSUER]) if each in claims.get("aud", [ISSUER])]
        if account not in self.accounts or not audiences:
            return {"user": {}, "error": "[invalid bearer token, service account is gone]"}
        user = {"username": username, "uid": self.accounts[account], "groups": ["system:serviceaccounts"]}
        return {"authenticated": True, "user": user, "audiences": audiences}


class _Handler(BaseHTTPRequestHandler):
    server: ApiServer

    def do_GET(self) -> None:
        self.server.fetched.append(self.path)
        documents: dict[str, Any] = {
            "/.well-known/openid-configuration": {"issuer": ISSUER, "jwks_uri": "https://10.9.9.9:6443/openid/v1/jwks"},
            "/openid/v1/jwks": {"keys": [self.server.key.as_dict(private=False)]},
        }
        self._answer(200, documents.get(self.path))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/apis/authentication.k8s.io/v1/tokenreviews" or body.get("kind") != "TokenReview":
            self._answer(404, {})
        elif not self.server.may_review:
            self._answer(403, {"kind": "Status", "message": "tokenreviews is forbidden"})
        else:
            self.server.reviews.append(body["spec"])
            self._answer(201, body | {"status": self.server.review(body["spec"])})

    def _answer(self, status: int, document: object) -> None:
        is_known = self.headers.get("Authorization", "").removeprefix("Bearer ") in self.server.let_in
        content = json.dumps(document if is_known else {"kind": "Status"}).encode()
        self.send_response(status if is_known else 401)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def write_certificate(file: Path) -> None:
    """A key and a certificate for 127.0.0.1 that vouches for itself, both into `file`."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file.write_bytes(key.private_bytes(*plain) + certificate.public_bytes(serialization.Encoding.PEM))


@contextmanager
def run_api_server(certificate: Path | None = None) -> Iterator[ApiServer]:
    with ApiServer() as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            server.address = server.address.replace("http:", "https:")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(timeout=60)


def settings_for(server: ApiServer, token_file: Any, **changed: Any) -> KubernetesConfig:
    basic = {"enabled": True, "api_server": server.address, "token_file": token_file, "audience": ("lakewarden",)}
    return KubernetesConfig.model_validate(basic | changed)
