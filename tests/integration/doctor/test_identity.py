"""The doctor against a real HTTP server that plays an OIDC provider, well and badly."""

import json
import threading
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import time
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from lakewarden import config
from lakewarden.doctor import identity
from lakewarden.doctor.findings import Finding, State

KEY = RSAKey.generate_key(2048, parameters={"use": "sig"}).as_dict(private=False)


class Provider(ThreadingHTTPServer):
    """Answers what is in `documents`, by path; `clock_ahead_s` shifts its Date header."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.clock_ahead_s = 0.0
        self.posted: dict[str, tuple[int, Any]] = {}
        self.documents: dict[str, Any] = {
            "/.well-known/openid-configuration": {"issuer": self.address, "jwks_uri": f"{self.address}/keys"},
            "/keys": {"keys": [KEY]},
        }


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        document = self.server.documents.get(self.path)
        self.send_response_only(404 if document is None else 200)
        self.send_header("Date", formatdate(time() + self.server.clock_ahead_s, usegmt=True))
        self.end_headers()
        self.wfile.write(document if isinstance(document, bytes) else json.dumps(document).encode())

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        status, document = self.server.posted.get(self.path, (404, {}))
        self.send_response_only(status)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def examined(issuer: str, **more: str) -> list[Finding]:
    environment = {"LAKEWARDEN__OPENID__OIDC__ISSUER": issuer, "LAKEWARDEN__OPENID__OIDC__AUDIENCE": "lakewarden"}
    environment |= {f"LAKEWARDEN__OPENID__OIDC__{name}": value for name, value in more.items()}
    return list(identity.examine(config.read(environment)))


def test_a_good_provider_is_ok(provider: Provider) -> None:
    [finding] = examined(provider.address)
    assert (finding.state, finding.name) == (State.OK, "identity provider oidc")
    assert "usable signing keys: 1" in finding.sentence


def test_another_issuer_names_both(provider: Provider) -> None:
    provider.documents["/.well-known/openid-configuration"]["issuer"] = "https://other.test"
    [finding] = examined(provider.address)
    assert finding.state is State.FAIL
    assert "https://other.test" in finding.sentence
    assert provider.address in finding.sentence


@pytest.mark.parametrize("keys", [{}, {"keys": []}, {"keys": "none"}, {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}])
def test_no_usable_key_is_a_failure(provider: Provider, keys: Any) -> None:
    provider.documents["/keys"] = keys
    [finding] = examined(provider.address)
    assert finding.state is State.FAIL
    assert "no key that tokens can be verified with" in finding.sentence


@pytest.mark.parametrize(
    ("answer", "said"),
    [(None, "answers with status 404"), (b"<html>", "does not answer with JSON"), ([], "is not a JSON object")],
)
def test_a_discovery_document_that_is_none_is_a_failure(provider: Provider, answer: Any, said: str) -> None:
    provider.documents["/.well-known/openid-configuration"] = answer
    [finding] = examined(provider.address)
    assert finding.state is State.FAIL
    assert said in finding.sentence


@pytest.mark.parametrize(("ahead_s", "said"), [(600.0, "ahead of"), (-600.0, "behind")])
def test_another_time_of_day_is_warned_of(provider: Provider, ahead_s: float, said: str) -> None:
    provider.clock_ahead_s = ahead_s
    [_, finding] = examined(provider.address)
    assert (finding.state, finding.name) == (State.WARN, "identity provider oidc, clock")
    assert said in finding.sentence


def test_no_provider_at_the_address_is_a_failure_with_a_remedy(provider: Provider) -> None:
    provider.shutdown()
    provider.server_close()
    [finding] = examined(provider.address)
    assert finding.state is State.FAIL
    assert "Connection refused" in finding.sentence
    assert "LAKEWARDEN__OPENID__OIDC__ISSUER" in (finding.fix or "")


def test_configured_keys_need_no_discovery(provider: Provider) -> None:
    del provider.documents["/.well-known/openid-configuration"]
    [finding] = examined(provider.address, JWKS_URI=f"{provider.address}/keys")
    assert finding.state is State.OK


CREDENTIALS = {"INTROSPECTION__CLIENT_ID": "lake", "INTROSPECTION__CLIENT_SECRET": "hush-hush"}


def introspection(provider: Provider, status: int, answer: Any) -> Finding:
    provider.documents["/.well-known/openid-configuration"]["introspection_endpoint"] = f"{provider.address}/ask"
    provider.posted["/ask"] = (status, answer)
    [_, finding] = examined(provider.address, **CREDENTIALS)
    assert finding.name == "identity provider oidc, introspection"
    assert "hush-hush" not in str(finding)
    return finding


def test_introspection_that_answers_is_ok(provider: Provider) -> None:
    finding = introspection(provider, 200, {"active": False})
    assert (finding.state, finding.sentence) == (State.OK, f"{provider.address}/ask accepts this server's client")


@pytest.mark.parametrize(
    ("status", "answer", "said", "fix"),
    [
        (401, {"error": "invalid_client"}, "may not introspect", "CLIENT_SECRET"),
        (403, {}, "may not introspect", "CLIENT_SECRET"),
        (200, {"active": True, "sub": "anybody"}, "accepts an invented token as active", "URI"),
        (200, {}, "'active' is missing", "URI"),
        (500, {}, "status 500", "URI"),
    ],
)
def test_introspection_that_will_not_do_is_a_failure(
    provider: Provider, status: int, answer: Any, said: str, fix: str
) -> None:
    finding = introspection(provider, status, answer)
    assert finding.state is State.FAIL
    assert said in finding.sentence
    assert f"LAKEWARDEN__OPENID__OIDC__INTROSPECTION__{fix}" in (finding.fix or "")


def test_provider_that_offers_no_introspection_is_a_failure(provider: Provider) -> None:
    [_, finding] = examined(provider.address, **CREDENTIALS)
    assert finding.state is State.FAIL
    assert "names no 'introspection_endpoint'" in finding.sentence


REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


def cluster(provider: Provider, tmp_path: Path, **more: str) -> list[Finding]:
    token = tmp_path / "token"
    token.write_text("own-token")
    settings = {"ENABLED": "true", "API_SERVER": provider.address, "TOKEN_FILE": str(token), "AUDIENCE": "lakewarden"}
    environment = {f"LAKEWARDEN__KUBERNETES__{name}": value for name, value in (settings | more).items()}
    found = list(identity.examine(config.read(environment)))
    assert "own-token" not in " ".join(map(str, found))
    return found


def test_cluster_that_reviews_tokens_is_ok_without_any_oidc_provider(provider: Provider, tmp_path: Path) -> None:
    provider.posted[REVIEWS] = (201, {"status": {"authenticated": True}})
    [finding] = cluster(provider, tmp_path)
    assert (finding.state, finding.name) == (State.OK, "kubernetes")
    [_, warned] = cluster(provider, tmp_path, AUDIENCE="")
    assert (warned.state, warned.name) == (State.WARN, "kubernetes, audience")


def test_cluster_that_publishes_its_keys_is_ok(provider: Provider, tmp_path: Path) -> None:
    provider.documents["/openid/v1/jwks"] = {"keys": [KEY]}
    [finding] = cluster(provider, tmp_path, METHOD="keys")
    assert finding.state is State.OK
    assert "usable signing keys: 1" in finding.sentence
    provider.documents["/openid/v1/jwks"] = {"keys": []}
    [finding] = cluster(provider, tmp_path, METHOD="keys")
    assert finding.state is State.FAIL


@pytest.mark.parametrize(
    ("status", "fix"), [(401, "TOKEN_FILE"), (403, "ClusterRole system:auth-delegator"), (500, "API_SERVER")]
)
def test_cluster_that_does_not_let_us_in_is_a_failure_with_a_remedy(
    provider: Provider, tmp_path: Path, status: int, fix: str
) -> None:
    provider.posted[REVIEWS] = (status, {})
    [finding] = cluster(provider, tmp_path)
    assert finding.state is State.FAIL
    assert f"status {status}" in finding.sentence
    assert fix in (finding.fix or "")


def test_cluster_without_our_token_or_its_certificates_is_a_failure(provider: Provider, tmp_path: Path) -> None:
    [finding] = cluster(provider, tmp_path, TOKEN_FILE=str(tmp_path / "none"))
    assert (finding.state, "TOKEN_FILE" in (finding.fix or "")) == (State.FAIL, True)
    https = provider.address.replace("http:", "https:")
    [finding] = cluster(provider, tmp_path, API_SERVER=https, CA_FILE=str(tmp_path / "none"))
    assert (finding.state, "CA_FILE" in (finding.fix or "")) == (State.FAIL, True)
