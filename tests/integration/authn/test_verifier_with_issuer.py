"""The verifier against the running development issuer, over real HTTP."""

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lakewarden.authn.chain import AuthenticatorChain, Surroundings
from lakewarden.authn.json_fetch import FetchFailed, fetch_json
from lakewarden.authn.provider import OidcProvider
from lakewarden.authn.provider_keys import RefreshLimits
from lakewarden.errors import NotAuthorized, Unavailable
from tests.servers.issuer import RunningIssuer, free_port, run_issuer


def trusting(url: str, *, audience: str = "lakewarden", scope: str | None = None) -> AuthenticatorChain:
    return AuthenticatorChain([OidcProvider(id="oidc", issuer=url, audiences=(audience,), scope=scope)])


def test_client_token_is_an_application(issuer: RunningIssuer) -> None:
    principal = trusting(issuer.url, scope="catalog").authenticate(f"Bearer {issuer.engine_token()}")

    assert (principal.id, principal.kind, principal.name) == (
        "oidc~lakewarden-engine",
        "application",
        "lakewarden-engine",
    )
    assert principal.issuer == issuer.url
    assert time.time() + 3500 < principal.expires_at <= time.time() + 3600


def test_token_for_another_audience_or_scope_is_refused(issuer: RunningIssuer) -> None:
    header = f"Bearer {issuer.engine_token()}"

    with pytest.raises(NotAuthorized, match="another audience"):
        trusting(issuer.url, audience="other").authenticate(header)
    with pytest.raises(NotAuthorized, match="lacks the scope 'sign'"):
        trusting(issuer.url, scope="sign").authenticate(header)


def test_issuer_that_starts_late_and_goes_away_again(tmp_path: Path) -> None:
    port = free_port()
    authenticator = trusting(f"http://127.0.0.1:{port}")
    with run_issuer(tmp_path / "one", port=port) as first:
        known, fresh = first.engine_token(), first.engine_token()
    with pytest.raises(Unavailable, match="cannot be reached"):
        authenticator.authenticate(f"Bearer {known}")

    time.sleep(1)  # the pause between two attempts
    with run_issuer(tmp_path / "one", port=port):
        assert authenticator.authenticate(f"Bearer {known}").id == "oidc~lakewarden-engine"

    assert authenticator.authenticate(f"Bearer {known}").id == "oidc~lakewarden-engine"
    assert authenticator.authenticate(f"Bearer {fresh}").id == "oidc~lakewarden-engine"


def test_issuer_that_changes_its_key_is_followed(tmp_path: Path) -> None:
    with run_issuer(tmp_path / "state") as first:
        provider = OidcProvider(id="oidc", issuer=first.url, audiences=("lakewarden",))
        around = Surroundings(key_limits=RefreshLimits(unknown_key=0))
        authenticator = AuthenticatorChain([provider], surroundings=around)
        old, other_old = f"Bearer {first.engine_token()}", f"Bearer {first.engine_token()}"
        authenticator.authenticate(old)
        authenticator.authenticate(old)
        assert authenticator.find_known(old) is not None
    (tmp_path / "state" / "signing-key.json").unlink()
    with run_issuer(tmp_path / "state", port=first.port) as second:
        assert authenticator.authenticate(f"Bearer {second.engine_token()}").id == "oidc~lakewarden-engine"
        for withdrawn in (old, other_old):
            with pytest.raises(NotAuthorized, match="does not publish"):
                authenticator.authenticate(withdrawn)


def test_two_issuers_with_the_same_client_names_do_not_trust_each_other(tmp_path: Path, issuer: RunningIssuer) -> None:
    authenticator = trusting(issuer.url)
    with run_issuer(tmp_path / "other") as other, pytest.raises(NotAuthorized, match="is not trusted"):
        authenticator.authenticate(f"Bearer {other.engine_token()}")


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body = {
            "/ok": (200, b'{"a": 1}'),
            "/list": (200, b"[]"),
            "/broken": (200, b"{"),
            "/missing": (404, b"{}"),
            "/large": (200, b" " * (1024 * 1024 + 1)),
            "/redirect": (302, b""),
        }[self.path]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 302:
            self.send_header("Location", "/ok")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_fetch_json_gives_up_in_words() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        url = f"http://127.0.0.1:{web.server_port}"
        try:
            assert fetch_json(f"{url}/ok") == {"a": 1}
            assert fetch_json(f"{url}/redirect") == {"a": 1}
            for path, said in (
                ("list", "JSON object"),
                ("broken", "did not answer with JSON"),
                ("missing", "status 404"),
                ("large", "more than 1048576 bytes"),
            ):
                with pytest.raises(FetchFailed, match=said):
                    fetch_json(f"{url}/{path}")
        finally:
            web.shutdown()
            thread.join(timeout=60)
    with pytest.raises(FetchFailed, match="cannot be read"):
        fetch_json(f"http://127.0.0.1:{free_port()}/")
    with pytest.raises(FetchFailed, match="not an http or https address"):
        fetch_json("file:///etc/passwd")
