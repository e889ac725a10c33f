from base64 import urlsafe_b64encode
from hashlib import shake_256

import pytest

from lakewarden.errors import BadRequest
from lakewarden.storage.s3.upload_ids import ensure_plain


def encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "of_a_store",
    [
        "VXBsb2FkIElEIGZvciA2aWWpbmcncyBteS1tb3ZpZS5tMnRzIHVwbG9hZA",  # AWS
        "cNzkpGuhPKPPcd.wBm93LVhDDv2DuL_Vg2nMA6zRwpGMKMWhPvG6b3x7e4n9XjZL",
        encoded("21ef4f1a-090e-42d9-b2b5-92689da237f7.202132b1-5554-4997-9d46-3baf72c70466x1795373381952978335"),
        "4e2e7d6b-70bc-4518-879d-13723287d552",  # versitygw
        "2~0yWkXqmZ1fCnJ5cDgKzBp3m1Q9Yt8sV",  # Ceph
        "M2QyNjRm/+==",
    ],
)
def test_ids_of_stores_are_plain(of_a_store: str) -> None:
    ensure_plain(of_a_store)


def test_random_ids_of_96_bytes_are_plain() -> None:
    for number in range(2000):
        ensure_plain(urlsafe_b64encode(shake_256(str(number).encode()).digest(96)).decode())


@pytest.mark.parametrize(
    "forged",
    [
        "",
        ".",
        "..",
        "../../../wh/t2",
        "a/../../b",
        "a\\..\\b",
        "a b",
        "x" * 1025,
        encoded("x.../../../bucket/wh/t2/f"),
        encoded("x..."),
        encoded("x.a/../../b"),
        encoded("x.a\\..\\..\\b"),
        encoded(".../../f"),
        encoded("x.../../f") + "==",
    ],
)
def test_forged_ids_are_refused(forged: str) -> None:
    with pytest.raises(BadRequest, match="is not one that a store gives"):
        ensure_plain(forged)
