"""The development issuer as a process: what it publishes, what survives it, and when it does not start."""

import os
import signal
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests
from authlib.oidc.discovery import OpenIDProviderMetadata, get_well_known_url

from standalone.issuer import seed, server
from standalone.issuer.refusal import StartRefused
from tests.servers.issuer import RunningIssuer, run_issuer


def test_discovery_document_is_valid(issuer: RunningIssuer) -> None:
    document = requests.get(get_well_known_url(issuer.url, external=True), timeout=10).json()

    OpenIDProviderMetadata(document).validate()
    assert document["issuer"] == issuer.url
    for endpoint in ("authorization", "token", "userinfo", "end_session", "device_authorization"):
        assert document[f"{endpoint}_endpoint"].startswith(issuer.url + "/")


def test_published_keys_are_public(issuer: RunningIssuer) -> None:
    (key,) = requests.get(f"{issuer.url}/jwks", timeout=10).json()["keys"]

    assert set(key) == {"kty", "n", "e", "use", "alg", "kid"}


def test_foreign_host_name_is_refused(issuer: RunningIssuer) -> None:
    answer = requests.get(f"{issuer.url}/jwks", headers={"Host": "evil.example.org"}, timeout=10)
    assert answer.status_code == 400


def test_keys_credentials_and_sign_ins_survive_a_restart(tmp_path: Path) -> None:
    with run_issuer(tmp_path / "state") as first:
        keys = requests.get(f"{first.url}/jwks", timeout=10).json()
        token = first.engine_token()
    with run_issuer(tmp_path / "state", port=first.port) as second:
        assert requests.get(f"{second.url}/jwks", timeout=10).json() == keys
        assert second.identities == first.identities
        answer = second.post_token(
            None,
            token,
            grant_type=seed.TOKEN_EXCHANGE_GRANT,
            subject_token=token,
            subject_token_type="urn:ietf:params:oauth:token-type:access_token",
        )
        assert answer.status_code == 200, answer.text
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "state").glob("*.json")}
    assert modes == dict.fromkeys(("clients.json", "users.json", "signing-key.json"), 0o600)


def test_start_warns_once_and_log_holds_no_secret(tmp_path: Path) -> None:
    with run_issuer(tmp_path / "state") as issuer:
        token = issuer.engine_token()
        requests.get(f"{issuer.url}/authorize?code=secret-code", timeout=10)
    log = issuer.log.read_text()

    assert log.count("For development only") == 1
    for secret in (token, issuer.identities.engine.client_secret, "secret-code"):
        assert secret not in log


def test_interrupt_ends_it_without_a_traceback(tmp_path: Path) -> None:
    with run_issuer(tmp_path / "state") as issuer:
        issuer.process.send_signal(signal.SIGINT)
        assert issuer.process.wait(timeout=10) == 0
    assert "Traceback" not in issuer.log.read_text()


def test_many_clients_at_once_are_served(issuer: RunningIssuer) -> None:
    with ThreadPoolExecutor(max_workers=12) as threads:
        tokens = set(threads.map(lambda _: issuer.engine_token(), range(48)))

    assert len(tokens) == 48


def start_and_fail(state_dir: Path, *, port: int = 0, mode: str | None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != server.MODE_SETTING}
    command = [sys.executable, "-m", "standalone.issuer", "--port", str(port), "--state-dir", str(state_dir)]
    ended = subprocess.run(
        command,
        env=environment | ({} if mode is None else {server.MODE_SETTING: mode}),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_start_outside_development_mode_is_one_sentence(tmp_path: Path) -> None:
    assert "Set LAKEWARDEN__MODE=development" in start_and_fail(tmp_path, mode=None)
    assert "LAKEWARDEN__MODE is 'production'" in start_and_fail(tmp_path, mode="production")


def test_start_on_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = start_and_fail(tmp_path, port=port, mode="development")
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use): choose another port." in said


def test_start_with_damaged_state_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "clients.json").write_text("{")

    assert "clients.json is damaged. Delete it" in start_and_fail(tmp_path, mode="development")


def test_start_on_an_impossible_port_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="there is no such port"):
        server.run(70000, tmp_path, mode="development")
