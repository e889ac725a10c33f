"""`lakewarden ingest send`: files, standard input, resuming after kills, and messages for mistakes."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ingest.client.files import state
from lakewarden.cli.commands import main
from tests.servers.paper_gateway import TOKEN, PaperGateway, lost_after_storing, nacked

Send = Callable[..., Result]


@pytest.fixture
def send(gateway: PaperGateway, monkeypatch: pytest.MonkeyPatch) -> Send:
    monkeypatch.setenv("LAKEWARDEN_INGEST_TOKEN", TOKEN)

    def run(*arguments: object, stdin: str | None = None) -> Result:
        command = ["ingest", "send", *map(str, arguments)]
        return CliRunner().invoke(main, [*command, "--url", gateway.address], input=stdin)

    return run


def rows(count: int, first: int = 0) -> str:
    return "".join(f'{{"id": {each}, "name": "n{each}"}}\n' for each in range(first, first + count))


def ids(gateway: PaperGateway) -> list[int]:
    """The ids of all rows in all logs, in the order of their arrival."""
    return [event["after"]["id"] for source in gateway.log for event in gateway.events(source)]


ROWS = ("--format", "rows", "--table", "users", "--key", "id")


def test_a_file_of_rows_arrives_once(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(2500))
    done = send(file, *ROWS)
    assert done.exit_code == 0, done.output
    assert "2,500 events in 3 batches acknowledged" in done.stdout
    assert ids(gateway) == list(range(2500))
    event = gateway.events(next(iter(gateway.log)))[7]
    assert (event["rowId"], event["operation"], event["table"]) == ("7", "INSERT", "users")
    again = send(file, *ROWS)
    assert "0 events in 0 batches" in again.stdout
    assert "2,500 were sent before" in again.stdout
    assert ids(gateway) == list(range(2500))


def test_lines_added_later_follow(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(10))
    assert send(file, *ROWS).exit_code == 0
    file.write_text(rows(25))
    assert send(file, *ROWS).exit_code == 0
    assert ids(gateway) == list(range(25))
    sequences = [event["sequence"] for source in gateway.log for event in gateway.events(source)]
    assert sequences == sorted(set(sequences))
    assert len(gateway.log) == 1


def test_a_gzip_file_is_unpacked_and_resumed(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson.gz"
    file.write_bytes(gzip.compress(rows(3000).encode()))
    gateway.faults += [lambda gateway, batch: gateway.store(batch), nacked("invalid_format", text="no")]
    assert send(file, *ROWS, "--window", 1).exit_code == 1
    done = send(file, *ROWS)
    assert done.exit_code == 0, done.output
    assert ids(gateway) == list(range(3000))


def test_events_keep_their_members_and_numbers(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "events.ndjson"
    after = '{"price": 0.10000000000000000001, "id": 9007199254740993}'
    file.write_text(
        f'{{"sequence": 5, "timestamp": 7, "operation": "UPDATE", "rowId": "a", "after": {after}, "x": [1, 2]}}\n'
        '{"sequence": 6, "timestamp": 8, "operation": "DELETE", "table": "shop.orders", "rowId": "b"}\n'
    )
    assert send(file, "--table", "users").exit_code == 0
    (batch,) = gateway.batches
    first, second = batch["events"]
    assert (first["x"], first["table"], first["after"]["id"]) == ([1, 2], "users", 9007199254740993)
    assert (second["table"], second["operation"], batch["firstEventSequence"]) == ("shop.orders", "DELETE", 5)


def test_standard_input_does_not_wait_for_its_end(gateway: PaperGateway, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lakewarden.cli", "ingest", "send", "-", *ROWS, "--url", gateway.address]
    with started(command, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(rows(3).encode())
        process.stdin.flush()
        until(lambda: ids(gateway) == [0, 1, 2])
        process.stdin.write(rows(2, first=3).encode())
        process.stdin.close()
        assert process.wait(60) == 0
    assert ids(gateway) == [0, 1, 2, 3, 4]
    assert next(iter(gateway.log)).startswith("stdin-")


def started(command: Sequence[str], **options: Any) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"LAKEWARDEN_INGEST_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_a_killed_run_is_resumed_without_loss_or_doubling(
    gateway: PaperGateway, send: Send, tmp_path: Path, kind: signal.Signals
) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(20_000))
    gateway.answer_delay_s = 0.03
    command = [sys.executable, "-m", "lakewarden.cli", "ingest", "send", str(file), *ROWS, "--url", gateway.address]
    for wanted in (3_000, 9_000):
        with started(command) as process:
            until(lambda wanted=wanted: len(ids(gateway)) >= wanted)  # type: ignore[misc]
            process.send_signal(kind)
            assert process.wait(60) == (-9 if kind is signal.SIGKILL else 130)
    gateway.answer_delay_s = 0
    done = send(file, *ROWS)
    assert done.exit_code == 0, done.output
    assert ids(gateway) == list(range(20_000))
    assert len(gateway.log) == 1


def test_lost_acknowledgements_double_nothing(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(4000))
    gateway.faults += [lost_after_storing] * 3
    done = send(file, *ROWS)
    assert done.exit_code == 0, done.output
    assert ids(gateway) == list(range(4000))


def test_a_wrong_line_is_named_and_all_before_it_are_sent(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(1500) + '{"id": \n' + rows(5, first=1500))
    done = send(file, *ROWS)
    assert done.exit_code == 1
    assert "Line 1501: it is not a JSON object" in done.stderr
    assert ids(gateway) == list(range(1500))
    file.write_text(rows(1505))
    assert send(file, *ROWS).exit_code == 0
    assert ids(gateway) == list(range(1505))


def test_a_batch_that_the_gateway_refuses_is_explained_with_lines(
    gateway: PaperGateway, send: Send, tmp_path: Path
) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text("\n" + rows(10))
    gateway.faults += [nacked("invalid_format", text="events[3].after.name must not be there")]
    done = send(file, *ROWS)
    assert done.exit_code == 1
    assert "line 5.after.name must not be there (it holds lines 2 to 11)" in done.stderr


def test_wrong_lines_are_listed_without_sending(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text('{"id": 1}\n[1]\n{"name": "x"}\n{"id": null}\n\n{"id": {}}\n')
    done = send(file, *ROWS, "--check")
    assert done.exit_code == 1
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == [
        "line 2",
        "line 3",
        "line 4",
        "line 6",
        "Error",
    ]
    assert "jq -c" in done.stderr
    assert "the columns are: name" in done.stderr
    assert gateway.connects == []


def test_options_that_would_change_events_stop_a_resumed_run(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(3))
    assert send(file, *ROWS).exit_code == 0
    other = send(file, "--format", "rows", "--table", "people", "--key", "id")
    assert other.exit_code == 1
    assert "sent with --table users before" in other.stderr
    assert send(file, *ROWS, "--source", "mine").exit_code == 1
    assert send(file, *ROWS, "--restart", "--source", "mine").exit_code == 0
    assert [each["after"]["id"] for each in gateway.events("mine")] == [0, 1, 2]


def test_another_file_in_the_place_of_the_first_is_noticed(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(3))
    assert send(file, *ROWS).exit_code == 0
    file.write_text(rows(3, first=7))
    done = send(file, *ROWS)
    assert done.exit_code == 1
    assert "Line 3 is not the one that was sent before" in done.stderr


def test_another_gateway_in_the_place_of_the_first_is_noticed(
    gateway: PaperGateway, send: Send, tmp_path: Path
) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(3))
    assert send(file, *ROWS).exit_code == 0
    gateway.log.clear()
    done = send(file, *ROWS)
    assert done.exit_code == 1
    assert "acknowledged batch 0" in done.stderr
    assert "--restart" in done.stderr


def test_a_damaged_state_file_is_not_taken_for_none(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(3))
    file.with_name(file.name + state.SUFFIX).write_text("{")
    done = send(file, *ROWS)
    assert done.exit_code == 1
    assert "cannot be read" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--format", "rows", "--table", "users"), "--format rows needs --table NAME and --key COLUMN"),
        (("--skip-truncates",), "--skip-truncates belongs to --format debezium"),
        ((), "line 1: operation is missing. If the lines are plain rows, use --format rows"),
    ],
)
def test_mistakes_in_options_say_what_would_be_right(
    send: Send, tmp_path: Path, arguments: Sequence[str], sentence: str
) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(1))
    done = send(file, *arguments)
    assert done.exit_code == 1
    assert sentence.lower() in done.stderr.lower()


def test_without_anything_to_send_to(tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(1))
    done = CliRunner().invoke(main, ["ingest", "send", str(file), *ROWS, "--ready-file", str(tmp_path / "none.json")])
    assert done.exit_code == 1
    assert "give --url, or start `lakewarden dev`" in done.stderr


def test_a_file_that_is_not_there(send: Send, tmp_path: Path) -> None:
    assert "cannot be read: No such file" in send(tmp_path / "none.ndjson", *ROWS).stderr
    assert "is a directory" in send(tmp_path, *ROWS).stderr


def test_a_flush_is_waited_for(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    file = tmp_path / "users.ndjson"
    file.write_text(rows(1))
    done = send(file, *ROWS, "--flush")
    assert "Flushed: 2 events in 2 data files" in done.stdout, done.output


def test_large_events_are_cut_by_bytes(gateway: PaperGateway, send: Send, tmp_path: Path) -> None:
    gateway.status_details["capabilities"] = {"maxBatchSize": 1000, "maxMessageSize": 40_000}
    file = tmp_path / "users.ndjson"
    file.write_text("".join(json.dumps({"id": each, "text": "x" * 10_000}) + "\n" for each in range(10)))
    assert send(file, *ROWS).exit_code == 0
    assert ids(gateway) == list(range(10))
    assert {len(each["events"]) for each in gateway.batches} <= {1, 2, 3}
    file.write_text(json.dumps({"id": 1, "text": "x" * 50_000}))
    assert "Line 1: its event has 50," in send(file, *ROWS, "--restart").stderr
