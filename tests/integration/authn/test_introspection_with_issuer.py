"""Opaque tokens, revocation and role claims with the running development issuer, over real HTTP."""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import requests

from lakewarden.authn.chain import AuthenticatorChain
from lakewarden.authn.interface import VerifiedToken
from lakewarden.authn.provider import Introspection, OidcProvider
from lakewarden.errors import NotAuthorized, Unavailable
from tests.servers.issuer import RunningIssuer, free_port, run_issuer


def introspecting(
    issuer: RunningIssuer, *, all_tokens: bool = False, secret: str | None = None, max_missed_rechecks: int = 5
) -> OidcProvider:
    engine = issuer.identities.engine
    asking = Introspection(
        client_id=engine.client_id,
        client_secret=secret or engine.client_secret,
        all_tokens=all_tokens,
        recheck_after_s=0.2,
        max_missed_rechecks=max_missed_rechecks,
    )
    return OidcProvider(
        id="oidc", issuer=issuer.url, audiences=("lakewarden",), roles_claim="roles", introspection=asking
    )


def opaque_token(issuer: RunningIssuer) -> str:
    client = issuer.identities.opaque
    answer = issuer.post_token((client.client_id, client.client_secret), grant_type="client_credentials")
    return str(answer.json()["access_token"])


def revoke(issuer: RunningIssuer, token: str, *, client: str = "opaque") -> requests.Response:
    owner = getattr(issuer.identities, client)
    auth = (owner.client_id, owner.client_secret)
    return requests.post(f"{issuer.url}/revoke", data={"token": token}, auth=auth, timeout=10)


def refused_within(seconds: float, authenticate: Callable[[], VerifiedToken]) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            authenticate()
        except NotAuthorized:
            return True
        except Unavailable:
            pass  # not believed either, but nobody has refused it yet
        time.sleep(0.05)
    return False


def test_opaque_token_is_accepted_and_revoked(issuer: RunningIssuer) -> None:
    chain = AuthenticatorChain([introspecting(issuer)])
    token = opaque_token(issuer)
    assert token.count(".") == 0

    principal = chain.authenticate(f"Bearer {token}")
    assert (principal.id, principal.kind, principal.issuer) == ("oidc~lakewarden-opaque", "application", issuer.url)
    assert time.time() + 3500 < principal.expires_at <= time.time() + 3600

    assert revoke(issuer, token).status_code == 200
    assert refused_within(5, lambda: chain.authenticate(f"Bearer {token}"))
    with pytest.raises(NotAuthorized, match="not active"):
        AuthenticatorChain([introspecting(issuer)]).authenticate(f"Bearer {token}")


def test_revoked_jwt_is_refused_where_all_tokens_are_introspected(issuer: RunningIssuer) -> None:
    revocable, by_signature = (AuthenticatorChain([introspecting(issuer, all_tokens=each)]) for each in (True, False))
    token = issuer.engine_token()
    assert revocable.authenticate(f"Bearer {token}").id == "oidc~lakewarden-engine"

    assert revoke(issuer, token, client="engine").status_code == 200
    assert refused_within(5, lambda: revocable.authenticate(f"Bearer {token}"))
    assert by_signature.authenticate(f"Bearer {token}").id == "oidc~lakewarden-engine"


def test_revoked_token_is_refused_while_twelve_threads_bring_made_up_ones(issuer: RunningIssuer) -> None:
    chain = AuthenticatorChain([introspecting(issuer)])
    token, numbers, is_over = opaque_token(issuer), count(), threading.Event()
    chain.authenticate(f"Bearer {token}")

    def storm() -> None:
        while not is_over.is_set():
            with pytest.raises((NotAuthorized, Unavailable)):
                chain.authenticate(f"Bearer lwdev_{next(numbers)}", source="192.0.2.1")

    with ThreadPoolExecutor(12) as threads:
        for _ in range(12):
            threads.submit(storm)
        try:
            assert revoke(issuer, token).status_code == 200
            assert refused_within(10, lambda: chain.authenticate(f"Bearer {token}", source="192.0.2.2"))
        finally:
            is_over.set()


def test_unknown_opaque_token_is_not_active(issuer: RunningIssuer) -> None:
    with pytest.raises(NotAuthorized, match="not active"):
        AuthenticatorChain([introspecting(issuer)]).authenticate("Bearer lwdev_made-up")


def test_wrong_client_secret_is_unavailable_and_logged(issuer: RunningIssuer, caplog: pytest.LogCaptureFixture) -> None:
    token = opaque_token(issuer)
    chain = AuthenticatorChain([introspecting(issuer, secret="wr%ng")])

    with pytest.raises(Unavailable, match="cannot be asked"):
        chain.authenticate(f"Bearer {token}")
    assert "/introspect answered with status 401" in caplog.text
    assert token not in caplog.text
    assert "wr%" not in caplog.text


def test_verified_opaque_token_outlives_its_provider(tmp_path: Path) -> None:
    port = free_port()
    with run_issuer(tmp_path / "state", port=port) as first:
        provider, token, fresh = (
            introspecting(first, max_missed_rechecks=100),
            opaque_token(first),
            opaque_token(first),
        )
        chain = AuthenticatorChain([provider])
        chain.authenticate(f"Bearer {token}")

    for _ in range(4):
        time.sleep(0.25)
        before = time.monotonic()
        assert chain.authenticate(f"Bearer {token}").id == "oidc~lakewarden-opaque"
        assert time.monotonic() - before < 2  # it does not wait for a time-out
    with pytest.raises(Unavailable):
        chain.authenticate(f"Bearer {fresh}")

    time.sleep(1)  # the pause between two attempts
    with run_issuer(tmp_path / "state", port=port):
        assert chain.authenticate(f"Bearer {fresh}").id == "oidc~lakewarden-opaque"


def test_roles_of_clients_are_in_both_kinds_of_token(tmp_path: Path) -> None:
    with run_issuer(tmp_path / "state") as issuer:
        file = tmp_path / "state" / "clients.json"
        clients = json.loads(file.read_text())
        clients["lakewarden-engine"]["roles"] = ["writer", "ops"]
        clients["lakewarden-opaque"]["roles"] = ["reader"]
        file.write_text(json.dumps(clients))
        chain = AuthenticatorChain([introspecting(issuer)])

        assert chain.authenticate(f"Bearer {issuer.engine_token()}").token_roles == ("writer", "ops")
        assert chain.authenticate(f"Bearer {opaque_token(issuer)}").token_roles == ("reader",)
        without = replace(introspecting(issuer), roles_claim=None)
        assert AuthenticatorChain([without]).authenticate(f"Bearer {issuer.engine_token()}").token_roles == ()


def test_introspection_needs_a_client_with_a_secret(issuer: RunningIssuer) -> None:
    url, form = f"{issuer.url}/introspect", {"token": opaque_token(issuer)}

    for answer in (
        requests.post(url, data=form, timeout=10),
        requests.post(url, data=form | {"client_id": "lakewarden-console"}, timeout=10),
        requests.post(url, data=form, auth=("lakewarden-engine", "wrong"), timeout=10),
    ):
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        assert answer.json()["error_description"]


def test_introspection_describes_the_token_and_refuses_to_guess(issuer: RunningIssuer) -> None:
    engine = issuer.identities.engine
    auth = (engine.client_id, engine.client_secret)

    def introspect(**form: str) -> requests.Response:
        return requests.post(f"{issuer.url}/introspect", data=form, auth=auth, timeout=10)

    described = introspect(token=opaque_token(issuer)).json()
    assert (described["active"], described["sub"], described["aud"]) == (True, "lakewarden-opaque", "lakewarden")
    assert (described["token_type"], described["iss"]) == ("Bearer", issuer.url)
    assert introspect(token="lwdev_x").json() == {"active": False}
    assert introspect().json()["error"] == "invalid_request"
    assert introspect().json()["error_description"]


def test_revocation_by_another_client_changes_nothing(issuer: RunningIssuer) -> None:
    token = opaque_token(issuer)

    answer = revoke(issuer, token, client="admin")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert revoke(issuer, "lwdev_unknown").status_code == 200
    assert AuthenticatorChain([introspecting(issuer)]).authenticate(f"Bearer {token}").kind == "application"


def test_discovery_names_both_endpoints(issuer: RunningIssuer) -> None:
    document = requests.get(f"{issuer.url}/.well-known/openid-configuration", timeout=10).json()
    assert document["introspection_endpoint"] == f"{issuer.url}/introspect"
    assert document["revocation_endpoint"] == f"{issuer.url}/revoke"


def test_opaque_tokens_and_revocations_survive_a_restart(tmp_path: Path) -> None:
    with run_issuer(tmp_path / "state") as first:
        kept, gone = opaque_token(first), opaque_token(first)
        assert revoke(first, gone).status_code == 200
    with run_issuer(tmp_path / "state", port=first.port) as second:
        chain = AuthenticatorChain([introspecting(second)])
        assert chain.authenticate(f"Bearer {kept}").id == "oidc~lakewarden-opaque"
        with pytest.raises(NotAuthorized, match="not active"):
            chain.authenticate(f"Bearer {gone}")
    assert kept not in (tmp_path / "state" / "opaque-tokens.json").read_text()
