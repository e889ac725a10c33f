"""How many processes a server is, and what each gets."""

from pathlib import Path

import pytest

from lakewarden import config
from lakewarden.config import ConfigError
from lakewarden.serving import division
from lakewarden.serving.division import cores, environment_of_one, processes_of


def settings(**server: int) -> config.Config:
    return config.read({f"LAKEWARDEN__SERVER__{name.upper()}": str(value) for name, value in server.items()})


@pytest.mark.parametrize(
    ("machine", "threads", "expected"), [(1, 16, 1), (2, 16, 2), (8, 16, 4), (8, 32, 8), (8, 1, 1), (64, 256, 64)]
)
def test_it_is_one_for_each_core_as_far_as_there_are_threads(
    monkeypatch: pytest.MonkeyPatch, machine: int, threads: int, expected: int
) -> None:
    monkeypatch.setattr(division, "cores", lambda: machine)
    assert processes_of(settings(threads=threads)) == expected


def test_what_is_configured_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division, "cores", lambda: 8)
    assert processes_of(settings(processes=3)) == 3


def test_fewer_than_four_threads_for_each_are_refused() -> None:
    with pytest.raises(ConfigError, match="set threads to 20 or more"):
        settings(processes=5)
    assert settings(processes=5, threads=20).server.threads == 20
    assert settings(processes=1, threads=1).server.threads == 1


@pytest.mark.parametrize(("quota", "expected"), [("max 100000", None), ("100000 100000", 1), ("150000 100000", 2)])
def test_a_container_s_quota_counts_as_cores(tmp_path: Path, quota: str, expected: int | None) -> None:
    path = tmp_path / "cpu.max"
    path.write_text(quota)
    everything = cores(tmp_path / "missing")
    assert cores(path) == min(everything, expected or everything)


def test_the_parts_are_no_more_than_the_whole() -> None:
    own = {"LAKEWARDEN__SERVER__THREADS": "18", "lakewarden__server__queue": "100", "PATH": "/bin"}
    whole = config.read(own)
    given = environment_of_one(own, whole, 4)
    part = config.read(given)
    assert given["PATH"] == "/bin"
    assert part.server.threads == 4
    assert part.server.queue == 25
    assert part.server.verification_threads == 2
    assert part.server.max_connections == 250
    assert part.server.processes == 1
    assert part.storage.max_calls_at_once == 2
    assert part.server.max_body_bytes == whole.server.max_body_bytes
