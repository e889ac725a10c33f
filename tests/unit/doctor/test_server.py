import pytest

from lakewarden import config
from lakewarden.doctor import server
from lakewarden.doctor.findings import State


def found(**settings: str) -> dict[str, State]:
    environment = {f"LAKEWARDEN__{name}": value for name, value in settings.items()}
    return {finding.name: finding.state for finding in server.examine(config.read(environment))}


@pytest.mark.parametrize(
    ("mode", "host", "state"),
    [
        ("development", "127.0.0.1", State.OK),
        ("development", "localhost", State.OK),
        ("development", "::1", State.OK),
        ("development", "0.0.0.0", State.WARN),  # noqa: S104 that is what is warned of
        ("development", "catalog.internal", State.WARN),
        ("production", "0.0.0.0", State.OK),  # noqa: S104 as above
    ],
)
def test_development_mode_is_warned_of_where_others_can_connect(mode: str, host: str, state: State) -> None:
    assert found(MODE=mode, SERVER__HOST=host)["mode"] is state


def test_switched_off_authorization_is_warned_of() -> None:
    assert found(AUTHORIZATION__BACKEND="allow-all")["authorization"] is State.WARN
    assert found()["authorization"] is State.OK


@pytest.mark.parametrize(
    ("address", "state"),
    [
        ("https://lake.example.org", State.OK),
        ("http://127.0.0.1:8181/lake", State.OK),
        ("lake.example.org", State.WARN),
        ("ftp://lake.example.org", State.WARN),
        ("https://", State.WARN),
    ],
)
def test_base_address_must_be_one_that_clients_can_use(address: str, state: State) -> None:
    assert found(SERVER__BASE_URI=address)["base address"] is state
