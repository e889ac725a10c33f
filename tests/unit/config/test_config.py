from pathlib import Path

import pytest

from lakewarden import config
from lakewarden.config import ConfigError
from lakewarden.settings import _database


def test_without_any_variable_everything_has_its_default() -> None:
    found = config.read({"PATH": "/bin", "LAKEWARDEN_NOT_OURS": "x"})
    assert (found.mode, found.server.host, found.server.port) == ("production", "127.0.0.1", 8181)
    assert found.database.url is None
    assert found.storage.local_roots == ()


def test_names_are_matched_without_case_and_lists_are_split() -> None:
    found = config.read(
        {
            "LAKEWARDEN__Server__PORT": "9000",
            "LAKEWARDEN__STORAGE__LOCAL_ROOTS": "/a, /b,",
            "LAKEWARDEN__OPENID__MAIN__ISSUER": "https://issuer.test",
            "LAKEWARDEN__OPENID__MAIN__AUDIENCE": "one,two",
        }
    )
    assert found.server.port == 9000
    assert found.storage.local_roots == (Path("/a"), Path("/b"))
    assert found.openid["main"].audience == ("one", "two")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("LAKEWARDEN__SERVER__PROT", "1", "LAKEWARDEN__SERVER__PROT: is not a known setting"),
        ("LAKEWARDEN__PORT", "1", "LAKEWARDEN__PORT: is not a known setting"),
        ("LAKEWARDEN__SERVER__PORT", "99999", "LAKEWARDEN__SERVER__PORT"),
        ("LAKEWARDEN__SERVER__PORT", "many", "LAKEWARDEN__SERVER__PORT"),
        ("LAKEWARDEN__SERVER", "x", "LAKEWARDEN__SERVER"),
        ("LAKEWARDEN__MODE", "staging", "LAKEWARDEN__MODE"),
        ("LAKEWARDEN__STORAGE__LOCAL_ROOTS", "a/b", "'a/b' is not an absolute path"),
        ("LAKEWARDEN__OPENID__a~b__ISSUER", "https://x", "'a~b'"),
        ("LAKEWARDEN__OPENID__MAIN__AUDIENCE", "x", "LAKEWARDEN__OPENID__MAIN__ISSUER"),
        ("LAKEWARDEN__OPENID__MAIN__ISSUER", "id.example.org", "__ISSUER: must be an http or https address"),
        ("LAKEWARDEN__OPENID__MAIN__ISSUER", "https://", "__ISSUER: must be an http or https address"),
        ("LAKEWARDEN__OPENID__KUBERNETES__ISSUER", "https://x", "'kubernetes' is taken by service accounts"),
        ("LAKEWARDEN__OPENID__SYSTEM__ISSUER", "https://x", "'system' is taken by the server itself"),
        ("LAKEWARDEN__OPENID__LAKEWARDEN__ISSUER", "https://x", "'lakewarden' is taken by roles"),
        ("LAKEWARDEN__OPENID__ROLE__ISSUER", "https://x", "'role' is taken by roles"),
        ("LAKEWARDEN__OPENID__café__ISSUER", "https://x", "'café' is not 1 to 64"),
        (f"LAKEWARDEN__OPENID__{'a' * 65}__ISSUER", "https://x", "is not 1 to 64"),
        ("LAKEWARDEN__KUBERNETES__METHOD", "guess", "LAKEWARDEN__KUBERNETES__METHOD"),
        ("LAKEWARDEN__KUBERNETES__SUBJECT", "namespace", "LAKEWARDEN__KUBERNETES__SUBJECT"),
        ("LAKEWARDEN__KUBERNETES__API_SERVER", "10.0.0.1:6443", "__API_SERVER: must be an http or https address"),
        ("LAKEWARDEN__KUBERNETES__RECHECK_AFTER_S", "0", "LAKEWARDEN__KUBERNETES__RECHECK_AFTER_S"),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(name: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.read({name: value})
    assert words in str(caught.value)


def test_a_setting_below_a_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="is inside a setting"):
        config.read({"LAKEWARDEN__MODE": "production", "LAKEWARDEN__MODE__X": "1"})


def test_every_problem_is_told_at_once_and_no_secret_with_it() -> None:
    with pytest.raises(ConfigError) as caught:
        config.read({"LAKEWARDEN__SERVER__PORT": "x", "LAKEWARDEN__MODE": "y", "LAKEWARDEN__DATABASE__URI": "hush"})
    assert str(caught.value).count("\n") == 2
    assert "hush" not in str(caught.value)


def test_the_database_url_is_taken_apart_with_its_escapes() -> None:
    url = "postgresql://us%40er:p%3Aw@db.test:5433/na%2Fme?sslmode=require&host=/run/pg"
    found = _database(config.read({"LAKEWARDEN__DATABASE__URL": url}).database)
    assert (found["USER"], found["PASSWORD"], found["NAME"]) == ("us@er", "p:w", "na/me")
    assert (found["HOST"], found["PORT"]) == ("/run/pg", "5433")
    assert found["OPTIONS"]["sslmode"] == "require"


def test_a_database_url_may_name_several_servers_of_which_no_standby_is_used() -> None:
    url = "postgresql://user@one:5433,two:5434/lake"
    found = _database(config.read({"LAKEWARDEN__DATABASE__URL": url}).database)
    assert (found["HOST"], found["PORT"]) == ("one,two", "5433,5434")
    assert found["OPTIONS"]["target_session_attrs"] == "read-write"


def test_secrets_are_not_shown() -> None:
    found = config.read({"LAKEWARDEN__DATABASE__URL": "postgresql://u:hush@h/d"})
    assert "hush" not in repr(found)


OIDC = "LAKEWARDEN__OPENID__OIDC__"
KUBERNETES = "LAKEWARDEN__KUBERNETES__"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"CLIENT_SECRET": "hush"}, "client_secret is set, but client_id is missing"),
        ({"URI": "https://a/i"}, "uri is set, but client_id is missing"),
        ({"ALL_TOKENS": "true"}, "all_tokens is set, but client_id is missing"),
        ({"CLIENT_ID": "lake"}, "client_secret is missing"),
        ({"CLIENT_ID": "", "CLIENT_SECRET": "hush"}, "CLIENT_ID"),
        ({"CLIENT_ID": "lake", "CLIENT_SECRET": "hush", "URI": "a/i"}, "must be an http or https address"),
    ],
)
def test_introspection_by_halves_is_refused(settings: dict[str, str], words: str) -> None:
    environment = {f"{OIDC}ISSUER": "https://a"} | {f"{OIDC}INTROSPECTION__{k}": v for k, v in settings.items()}
    with pytest.raises(ConfigError) as caught:
        config.read(environment)
    assert words in str(caught.value)
    assert f"{OIDC}INTROSPECTION" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_kubernetes_keys_without_an_audience_are_refused() -> None:
    keys = {f"{KUBERNETES}ENABLED": "true", f"{KUBERNETES}METHOD": "keys"}
    with pytest.raises(ConfigError, match="audience is missing"):
        config.read(keys)
    assert config.read(keys | {f"{KUBERNETES}AUDIENCE": "lakewarden"}).kubernetes.method == "keys"


def test_identity_settings_have_their_defaults() -> None:
    found = config.read({f"{OIDC}ISSUER": "https://a", f"{KUBERNETES}ENABLED": "true"})
    provider, cluster = found.openid["oidc"], found.kubernetes
    assert (provider.clock_skew_s, provider.roles_claim, provider.introspection.client_id) == (60, None, None)
    assert (cluster.method, cluster.subject, cluster.audience) == ("token-review", "uid", ())
    assert cluster.api_server == "https://kubernetes.default.svc"
    assert cluster.token_file == Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
