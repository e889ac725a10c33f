"""What the processes of one server share: each takes from the same whole, and an ended one gives back what it held."""

import threading

import pytest

from lakewarden import board
from lakewarden.board import Board
from lakewarden.fair_shares import CommonShares

TOTAL = 1000


@pytest.fixture
def file() -> int:
    return board.new_file(3)


def shares(file: int, row: int, *, percent: int = 75) -> CommonShares:
    return CommonShares("bodies", TOTAL, percent=percent, on=Board(file, processes=3, row=row))


def test_what_one_process_takes_the_others_do_not_have(file: int) -> None:
    first, second = shares(file, 0, percent=100), shares(file, 1, percent=100)
    assert first.take("alice", 700)
    assert not second.take("bob", 400)
    assert second.taken == 700
    assert second.take("bob", 300)
    first.give_back("alice", 700)
    assert second.taken == 300


def test_a_caller_has_one_share_however_many_processes_they_reach(file: int) -> None:
    processes = [shares(file, row) for row in range(3)]
    for _ in range(100):
        for each in processes:
            each.take("alice", 10)
    assert processes[0].held_by("alice") == 750
    assert processes[2].take("bob", 10)
    assert processes[0].held_by("bob") == 10


def test_what_an_ended_process_held_is_there_again(file: int) -> None:
    supervisor = Board(file, processes=3, row=-1)
    killed, other = shares(file, 0, percent=100), shares(file, 1, percent=100)
    killed.take("alice", 900)
    other.take("bob", 50)
    supervisor.clear(0)
    assert other.taken == 50
    assert other.take("carol", 950)


def test_never_more_is_taken_than_there_is(file: int) -> None:
    """Four threads of each of three processes at once."""
    guard, granted, most = threading.Lock(), 0, 0

    def storm(each: CommonShares, caller: str) -> None:
        nonlocal granted, most
        for _ in range(300):
            if each.take(caller, 130):
                with guard:
                    granted += 130
                    most = max(most, granted)
                with guard:
                    granted -= 130
                each.give_back(caller, 130)

    processes = [shares(file, row, percent=100) for row in range(3)]
    threads = [threading.Thread(target=storm, args=(each, f"c{n}")) for each in processes for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < most <= TOTAL
    assert processes[0].taken == 0


def test_readiness_and_connections_are_seen_by_all(file: int) -> None:
    first, second = Board(file, processes=3, row=0), Board(file, processes=3, row=1)
    assert first.ready == 0
    assert first.fewest_connections_elsewhere() is None
    second.note_ready()
    second.note_alive(12345, connections=7)
    assert first.ready == 1
    assert first.fewest_connections_elsewhere() == 7
    assert first.seen(1) == 12345
    assert not first.were_all_ready
    Board(file, processes=3, row=-1).note_all_ready()
    assert first.were_all_ready
