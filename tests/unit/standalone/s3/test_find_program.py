import io
from pathlib import Path

import pytest

from standalone import go_programs
from standalone.errors import EmbeddedError
from standalone.s3.programs import MINIO, VERSITYGW
from standalone.s3.store import find_program


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with programs; nothing is in the cache, and no package contains Go."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("LAKEWARDEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(go_programs, "find_spec", lambda _: None)
    return folder


def put(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(0o755)
    return file


def test_one_that_issues_keys_is_preferred(path: Path) -> None:
    other = put(path / "versitygw")
    assert find_program(io.StringIO()) == (VERSITYGW, other)
    built = put(go_programs.program_path(MINIO.go))
    assert find_program(io.StringIO()) == (MINIO, built)
    on_path = put(path / "minio")
    assert find_program(io.StringIO()) == (MINIO, on_path)


@pytest.mark.usefixtures("path")
def test_without_any_it_is_said_what_to_install() -> None:
    with pytest.raises(EmbeddedError) as refusal:
        find_program(io.StringIO())
    message = str(refusal.value)
    assert "Go is not installed: install it, or `pip install lakewarden[s3]`" in message
    assert "put `minio` or `versitygw` on the PATH, or name a store that is running with --s3-endpoint" in message


def test_a_build_that_fails_says_why_and_leaves_nothing(path: Path, tmp_path: Path) -> None:
    go = put(path / "go")
    go.write_text("#!/bin/sh\necho 'no route to the module proxy' >&2\nexit 3\n")
    with pytest.raises(EmbeddedError, match=r"ended with 3:\nno route to the module proxy"):
        find_program(io.StringIO())
    assert [file.name for file in (tmp_path / "cache" / "go").iterdir()] == [".lock"]


def test_a_build_is_told_and_kept(path: Path) -> None:
    go = put(path / "go")
    go.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho built > "$2"\n')
    told = io.StringIO()
    program, executable = find_program(told)
    assert (program, executable.read_text()) == (MINIO, "built\n")
    assert "minio is not built yet: this takes minutes, once" in told.getvalue()


def test_go_of_a_package_is_found(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    packaged = put(tmp_path / "site-packages" / "go" / "bin" / "go")

    class Spec:
        origin = str(packaged.parents[1] / "__init__.py")

    monkeypatch.setattr(go_programs, "find_spec", lambda _: Spec)
    assert go_programs.find_go() == packaged
    assert go_programs.find_go() != put(path / "go") == go_programs.find_go()
