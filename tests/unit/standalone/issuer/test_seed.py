from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from standalone.issuer import seed
from standalone.issuer.clients import Clients
from standalone.issuer.state import StateDir


def test_prepare_creates_the_identities_once(tmp_path: Path) -> None:
    first = seed.prepare(tmp_path / "issuer")

    assert seed.prepare(tmp_path / "issuer") == first
    assert (first.admin.client_id, first.admin.subject, first.admin.scope) == (
        "lakewarden-admin",
        "lakewarden-admin",
        "catalog",
    )
    assert first.engine.client_id == "lakewarden-engine"
    assert first.user.username


def test_prepare_in_two_directories_makes_different_secrets(tmp_path: Path) -> None:
    one, other = seed.prepare(tmp_path / "1"), seed.prepare(tmp_path / "2")
    secrets = {each.client_secret for made in (one, other) for each in (made.admin, made.engine, made.opaque)}

    assert len(secrets) == 6
    assert min(map(len, secrets)) >= 32
    assert one.user.password != other.user.password


def test_prepare_at_the_same_time_agrees(tmp_path: Path) -> None:
    with ThreadPoolExecutor(max_workers=8) as threads:
        made = list(threads.map(seed.prepare, [tmp_path / "issuer"] * 8))

    assert made == [made[0]] * 8


def test_prepare_keeps_clients_that_somebody_added(tmp_path: Path) -> None:
    seed.prepare(tmp_path)
    state = StateDir(tmp_path)
    stored = state.read("clients.json") or {}
    state.write("clients.json", stored | {"mine": stored["lakewarden-engine"]})
    seed.prepare(tmp_path)

    found = Clients(state).find("mine")
    assert found is not None
    assert found.client_id == "mine"


def test_public_clients_have_no_secret(tmp_path: Path) -> None:
    seed.prepare(tmp_path)
    clients = Clients(StateDir(tmp_path))

    for client_id in (seed.CONSOLE_CLIENT_ID, seed.CLI_CLIENT_ID):
        client = clients.find(client_id)
        assert client is not None
        assert client.client_secret is None
        assert not client.check_grant_type("client_credentials")


def test_clients_and_people_of_an_older_directory_have_no_roles(tmp_path: Path) -> None:
    made = seed.prepare(tmp_path)
    state = StateDir(tmp_path)
    for file, key in (("clients.json", "lakewarden-engine"), ("users.json", made.user.username)):
        stored = state.read(file) or {}
        stored[key] = {name: each for name, each in stored[key].items() if name not in {"roles", "token_format"}}
        state.write(file, stored)

    client = Clients(state).find("lakewarden-engine")
    assert client is not None
    assert (client.roles, client.token_format) == ((), "jwt")
    assert seed.prepare(tmp_path).user.roles == ()


def test_roles_of_a_person_are_read_from_the_file(tmp_path: Path) -> None:
    made = seed.prepare(tmp_path)
    state = StateDir(tmp_path)
    stored = state.read("users.json") or {}
    stored[made.user.username]["roles"] = ["reader"]
    state.write("users.json", stored)

    assert seed.prepare(tmp_path).user.roles == ("reader",)
