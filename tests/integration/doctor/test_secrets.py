"""What the doctor says of the keys of secrets."""

import pytest
from pydantic import SecretStr

from lakewarden import config
from lakewarden.config import SecretsConfig
from lakewarden.config.secrets import new_key
from lakewarden.doctor import database
from lakewarden.doctor.findings import Finding, State
from lakewarden.secrets.database import DatabaseStore
from lakewarden.secrets.key_ring import KeyRing

pytestmark = pytest.mark.usefixtures("database")
OLD, NEW = new_key("old"), new_key("new")


def examined(url: str, **settings: str) -> dict[str, Finding]:
    named = {f"LAKEWARDEN__SECRETS__{name.upper()}": value for name, value in settings.items()}
    read = config.read({"LAKEWARDEN__DATABASE__URL": url, **named})
    return {finding.name: finding for finding in database.examine(read)}


def put(key: str) -> None:
    DatabaseStore(KeyRing.read(SecretsConfig(keys=SecretStr(key)))).put({"a": "b"})


def test_the_state_of_the_keys(database_url: str) -> None:
    assert "no warehouse with a credential can be created" in examined(database_url)["secrets"].sentence
    put(OLD)
    missing = examined(database_url)["secrets"]
    assert missing.state is State.FAIL
    assert "the key 'old', which the server does not have" in missing.sentence
    assert examined(database_url, keys=OLD)["secrets"].state is State.OK
    older = examined(database_url, keys=f"{NEW},{OLD}")["secrets"]
    assert (older.state, "older keys ('old')" in older.sentence) == (State.WARN, True)
    assert examined(database_url, keys=new_key("old"))["secrets"].state is State.FAIL
    unread = examined(database_url, keys_file="/nowhere")["secrets"]
    assert (unread.state, "No such file" in unread.sentence) == (State.FAIL, True)
    assert not any(key.partition(":")[2] in str(each) for key in (OLD, NEW) for each in (missing, older, unread))


def test_a_vault_that_cannot_be_reached(database_url: str) -> None:
    found = examined(database_url, backend="vault", vault__url="http://127.0.0.1:1", vault__token="t-0123456789")
    assert found["Vault"].state is State.FAIL
    assert "Vault cannot be reached at http://127.0.0.1:1" in found["Vault"].sentence
    assert "secrets" not in found
    assert "0123456789" not in str(found["Vault"])
