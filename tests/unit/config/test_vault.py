import pytest

from lakewarden import config

URL = {"LAKEWARDEN__SECRETS__VAULT__URL": "https://vault.example.org:8200"}
PREFIX = "LAKEWARDEN__SECRETS__VAULT__"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"AUTH": "token"}, "set one of secrets.vault.token and …token_file"),
        ({"AUTH": "token", "TOKEN": "t-0123456789", "TOKEN_FILE": "/t"}, "set one of secrets.vault.token"),
        ({"AUTH": "approle"}, "secrets.vault.role_id is missing: set it"),
        ({"AUTH": "kubernetes"}, "secrets.vault.role is missing: set it"),
        ({"AUTH": "userpass", "PASSWORD": "p-0123456789"}, "secrets.vault.username is missing: set it"),
        ({"AUTH": "userpass", "USERNAME": "u"}, "secrets.vault.password is missing: set it"),
        ({"AUTH": "ldap"}, "LAKEWARDEN__SECRETS__VAULT__AUTH"),
        ({"TOKEN": "t-0123456789", "PATH": "/a"}, "LAKEWARDEN__SECRETS__VAULT__PATH"),
        ({"TOKEN": "t-0123456789", "URL": "vault:8200"}, "must be an http or https address"),
    ],
)
def test_what_is_missing_is_named_without_secrets(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(config.ConfigError, match=sentence) as refused:
        config.read(URL | {PREFIX + name: value for name, value in settings.items()})
    assert "0123456789" not in str(refused.value)


def test_vault_needs_an_address() -> None:
    with pytest.raises(config.ConfigError, match=r"secrets.vault.url is missing: set its address"):
        config.read({"LAKEWARDEN__SECRETS__BACKEND": "vault"})


def test_without_an_address_nothing_of_it_is_needed() -> None:
    assert not config.read({}).secrets.in_vault
    assert config.read({f"{PREFIX}AUTH": "approle"}).secrets.vault.url is None


def test_secrets_are_not_shown_with_the_settings() -> None:
    read = config.read(URL | {f"{PREFIX}TOKEN": "t-0123456789"})
    assert "0123456789" not in repr(read)
    assert "0123456789" not in read.model_dump_json()
