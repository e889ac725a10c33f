"""The search for leaks finds what it is there for: otherwise its silence would say nothing."""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.contracts.storage.marks import SIGNATURES, Marks

SECRET = 'Leak/ed+"secret" & <more>'
WAYS: dict[str, Callable[[str], str]] = {
    "text": str,
    "upper case": str.upper,
    "url": lambda text: quote(text, safe=""),
    "json": json.dumps,
    "hex": lambda text: text.encode().hex(),
    "in hex of a longer text": lambda text: f"user:{text}".encode().hex(),
    "base64": lambda text: b64encode(text.encode()).decode(),
    "basic authentication": lambda text: b64encode(f"user:{text}".encode()).decode(),
    "base64 after one byte": lambda text: b64encode(f"x{text}y".encode()).decode(),
    "base64 for urls": lambda text: urlsafe_b64encode(f"ab{text}".encode()).decode(),
    "repr": repr,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_found_however_it_is_written(way: str) -> None:
    marks = Marks({"key": SECRET})
    marks.note("a log", f"before {WAYS[way](SECRET)} after")
    (found,) = marks.leaks()
    assert found.startswith("key in a log")


def test_what_is_not_there_is_not_found() -> None:
    marks = Marks({"key": SECRET})
    marks.note("a log", "Leak/ed, more secrets")
    assert marks.leaks() == []


def test_signatures_are_known() -> None:
    assert SIGNATURES.search(f"Credential=k, Signature={'a1' * 32}")
    assert SIGNATURES.search("GET /f?sv=2025&sig=abcdefghijklmnopqrstuvwx HTTP/1.1")
    assert not SIGNATURES.search("the signature is not valid: sig=")
