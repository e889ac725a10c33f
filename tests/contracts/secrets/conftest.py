"""For the contract of secret stores: each backend on a real server, the database's and OpenBao."""

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from lakewarden.config import SecretsConfig
from lakewarden.config.secrets import new_key
from lakewarden.secrets.database import DatabaseStore
from lakewarden.secrets.either import EitherStore
from lakewarden.secrets.interface import SecretStore
from lakewarden.secrets.key_ring import KeyRing
from tests.contracts.secrets.vaults import Vault
from tests.servers import openbao
from tests.servers.openbao import OpenBao


@pytest.fixture(scope="session")
def running() -> Iterator[OpenBao]:
    with openbao.start() as server:
        yield server


@pytest.fixture
def vault(running: OpenBao) -> Vault:
    return Vault(running)


def in_database() -> DatabaseStore:
    return DatabaseStore(KeyRing.read(SecretsConfig(keys=SecretStr(new_key("tests")))))


@pytest.fixture(params=["database", "vault", "vault, then database", "database, then vault"])
def store(request: pytest.FixtureRequest, database: None) -> SecretStore:
    if request.param == "database":
        return in_database()
    other = request.getfixturevalue("vault").store()
    if request.param == "vault":
        return other  # type: ignore[no-any-return]
    stores = (other, in_database())
    return EitherStore(*(stores if request.param.startswith("vault") else stores[::-1]))
