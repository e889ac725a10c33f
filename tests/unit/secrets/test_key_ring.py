import traceback
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from lakewarden.config import SecretsConfig
from lakewarden.config.secrets import new_key
from lakewarden.ids import new_id
from lakewarden.secrets.interface import SecretsNotConfigured, SecretUnreadable
from lakewarden.secrets.key_ring import KeyRing, Sealed

OLD, NEW = new_key("old"), new_key("new")
CONTENT = b"the secret"
REFERENCE = new_id()


def ring(*keys: str) -> KeyRing:
    return KeyRing.read(SecretsConfig(keys=SecretStr(",".join(keys)) if keys else None))


def test_the_first_key_encrypts_and_all_decrypt() -> None:
    sealed = ring(OLD).seal(REFERENCE, CONTENT)
    assert sealed.key_id == "old"
    both = ring(NEW, OLD)
    assert both.seal(REFERENCE, CONTENT).key_id == both.writing == "new"
    assert both.open(REFERENCE, sealed) == CONTENT
    assert CONTENT not in sealed.ciphertext


def test_nothing_is_encrypted_twice_in_the_same_way() -> None:
    one, other = (ring(OLD).seal(REFERENCE, CONTENT) for _ in range(2))
    assert one.nonce != other.nonce
    assert one.ciphertext != other.ciphertext


def test_a_value_of_another_row_is_refused() -> None:
    sealed = ring(OLD).seal(REFERENCE, CONTENT)
    with pytest.raises(SecretUnreadable, match="cannot be decrypted with the key 'old'"):
        ring(OLD).open(new_id(), sealed)


@pytest.mark.parametrize(
    "changes",
    [
        {"ciphertext": b""},
        {"nonce": b""},
        {"nonce": bytes(12)},
        {"ciphertext": bytes(40)},
        {"key_id": "new"},
    ],
)
def test_a_changed_value_is_refused(changes: dict[str, bytes]) -> None:
    sealed = replace(ring(OLD).seal(REFERENCE, CONTENT), **changes)  # type: ignore[arg-type]
    with pytest.raises(SecretUnreadable, match="the stored value was changed"):
        ring(OLD, NEW).open(REFERENCE, sealed)


def test_each_truncation_and_each_changed_bit_is_refused() -> None:
    sealed = ring(OLD).seal(REFERENCE, CONTENT)
    whole = sealed.ciphertext
    changed = [whole[:length] for length in range(len(whole))]
    changed += [bytes([*whole[:at], whole[at] ^ 1, *whole[at + 1 :]]) for at in range(len(whole))]
    for each in changed:
        with pytest.raises(SecretUnreadable):
            ring(OLD).open(REFERENCE, Sealed(sealed.key_id, sealed.nonce, each))


def test_a_key_that_is_missing_is_named() -> None:
    sealed = ring(OLD).seal(REFERENCE, CONTENT)
    with pytest.raises(SecretUnreadable, match="the key 'old', which the server does not have: add it to LAKEWARDEN__"):
        ring(NEW).open(REFERENCE, sealed)
    with pytest.raises(SecretUnreadable, match="the key is another one of the same id"):
        ring(new_key("old")).open(REFERENCE, sealed)


def test_without_a_key_nothing_is_encrypted() -> None:
    with pytest.raises(SecretsNotConfigured, match="set LAKEWARDEN__SECRETS__KEYS"):
        ring().seal(REFERENCE, CONTENT)


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# of this year\n{NEW}\n{OLD}\n")
    assert KeyRing.read(SecretsConfig(keys_file=file)).writing == "new"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "there is no key in it"),
        (b"\xff", "it is not text"),
        (b"old:c2hvcnQ=", "the key 'old' has"),
        (None, "No such file"),
    ],
)
def test_a_file_without_keys_is_named(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SecretsNotConfigured, match=f"secrets.keys_file, .*{sentence}") as refused:
        KeyRing.read(SecretsConfig(keys_file=file))
    assert "c2hvcnQ" not in "".join(traceback.format_exception(refused.value))


def test_keys_are_not_shown() -> None:
    assert OLD.partition(":")[2] not in repr(ring(OLD))
