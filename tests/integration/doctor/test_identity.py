"""The doctor against a real HTTP server that plays an OIDC provider, well and badly."""

import json
import threading
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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


def examined(issuer: str) -> list[Finding]:
    environment = {"LAKEWARDEN__OPENID__OIDC__ISSUER": issuer, "LAKEWARDEN__OPENID__OIDC__AUDIENCE": "lakewarden"}
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
    [(None, "answers with status 404"), (b"<html>", "does not answer with JSON"), ([], "is no JSON object")],
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
