from pathlib import Path

import pytest

from standalone.remembered_ports import recall, remember


def test_ports_are_remembered_by_name(tmp_path: Path) -> None:
    for name, port in (("server", 1), ("issuer", 2), ("server", 3)):
        remember(tmp_path / "ports", name=name, port=port)
    assert recall(tmp_path / "ports") == {"server": 3, "issuer": 2}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{",
        '{"server": "80"}',
        '{"server": 70000}',
        '{"server": 0}',
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)
def test_damaged_file_is_no_preference(tmp_path: Path, text: str) -> None:
    (tmp_path / "ports").write_text(text, encoding="latin-1")
    assert recall(tmp_path / "ports") == {}


def test_missing_file_is_no_preference(tmp_path: Path) -> None:
    assert recall(tmp_path / "ports") == {}
