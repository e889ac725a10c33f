from base64 import b64encode

import pytest

from lakewarden import config
from lakewarden.config.secrets import new_key, parse_keys

KEY = b64encode(bytes(range(32))).decode()
NAME = "LAKEWARDEN__SECRETS__KEYS"


def test_keys_keep_their_order_and_may_have_comments() -> None:
    text = f"new:{KEY}, old:{KEY}\n# the first ones\n 2025-01:{KEY} # until May"
    assert list(parse_keys(text)) == ["new", "old", "2025-01"]
    assert parse_keys(f"one:{KEY}") == {"one": bytes(range(32))}


def test_a_new_key_is_another_one_each_time() -> None:
    assert parse_keys(new_key("a")).keys() == {"a"}
    assert new_key("a") != new_key("a")
    with pytest.raises(ValueError, match="the id of a key"):
        new_key("a b")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (KEY[:-1], "a key is written as <id>:<base64 of 32 bytes>"),
        (f"a/b:{KEY}", "the id of a key is 1 to 64 of"),
        (f"a:{KEY},a:{KEY}", "the key 'a' is given twice"),
        (f"a:{KEY[:-4]}", "the key 'a' has 30 bytes, 32 are expected"),
        (f"a:{KEY[:-3]}?==", "the key 'a' is not valid base64"),
        (f"a:{'A' * 43}=", "the key 'a' is not random"),
        ("# none", "there is no key in it"),
    ],
)
def test_what_is_not_a_key_is_refused_without_being_shown(text: str, sentence: str) -> None:
    with pytest.raises(config.ConfigError, match=f"{NAME}: {sentence}") as refused:
        config.read({NAME: text})
    assert KEY[:20] not in str(refused.value)
    assert refused.value.__cause__ is None


def test_keys_are_not_shown_with_the_settings() -> None:
    settings = config.read({NAME: f"a:{KEY}"})
    assert KEY not in repr(settings)
    assert KEY not in settings.model_dump_json()


def test_keys_come_from_one_place() -> None:
    with pytest.raises(config.ConfigError, match="both set"):
        config.read({NAME: f"a:{KEY}", f"{NAME}_FILE": "/keys"})
