"""The command line of the benchmarks: what goes together."""

import pytest

from benchmarks.options import parse


def test_everything_shares_the_cores_and_one_process_serves_unless_asked_otherwise() -> None:
    given = parse([])
    assert (given.pin, given.processes, given.restart, given.analyse) == (False, 1, False, False)
    given = parse(["--pin", "--processes", "2", "--restart", "--analyse"])
    assert (given.pin, given.processes, given.restart, given.analyse) == (True, 2, True, True)


@pytest.mark.parametrize("option", [["--processes", "2"], ["--restart"], ["--storage", "s3"]])
def test_a_server_that_was_not_started_here_cannot_be_given_processes_or_started_again(
    option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse(["--ready-file", "lake.json", *option])
    assert "--processes, --storage and --restart belong to a server that this program starts" in capsys.readouterr().err
