from pathlib import Path

import pytest

from standalone.issuer import server
from standalone.issuer.refusal import StartRefused


@pytest.mark.parametrize(("mode", "said"), [(None, "not set"), ("production", "'production'"), ("", "''")])
def test_run_outside_development_mode_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str | None, said: str
) -> None:
    monkeypatch.delenv("LAKEWARDEN__MODE", raising=False)

    with pytest.raises(StartRefused, match=f"LAKEWARDEN__MODE is {said}. Set LAKEWARDEN__MODE=development"):
        server.run(0, tmp_path / "state", mode=mode)
    assert not (tmp_path / "state").exists()


def test_run_reads_the_mode_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEWARDEN__MODE", "production")

    with pytest.raises(StartRefused, match="'production'"):
        server.run(0, tmp_path)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])  # noqa: S104
def test_run_on_an_address_that_others_reach_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(StartRefused, match=r"use 127\.0\.0\.1"):
        server.run(0, tmp_path, host, mode="development")
