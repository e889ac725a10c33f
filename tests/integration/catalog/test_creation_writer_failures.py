"""Creations on the event loop: a file, connection or caller that fails takes no other creation with it."""

import asyncio
import os
import threading
from pathlib import Path

import psycopg
import pytest

from catalog.models import Tabular
from catalog.services.creation_writer import additions
from catalog.services.pointer import Stored
from lakewarden.errors import CommitStateUnknown
from lakewarden.hot import connections
from lakewarden.storage.interface import StorageError
from lakewarden.storage.local import LocalStorage
from tests.integration.catalog.creating import (
    TAKES_ORDERS,
    Into,
    create_together,
    elsewhere,
    files,
    table,
)
from tests.integration.catalog.observed import eventually
from tests.servers import asgi_client


def test_a_file_that_is_invalid_written_is_its_own_tables_alone(
    into: Into, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sales = into()
    write, count = LocalStorage.write_new, iter(range(100))

    def failing(self: LocalStorage, location: str, content: bytes) -> None:
        if next(count) == 3:
            raise StorageError("this one is refused")
        write(self, location, content)

    monkeypatch.setattr(LocalStorage, "write_new", failing)
    made = create_together(*(table(sales, f"t{number}") for number in range(10)))
    assert sum(each is None for each in made) == 1
    assert Tabular.objects.count() == 10


def test_a_database_that_goes_away_in_the_middle_leaves_the_outcome_unknown_and_keeps_the_file(
    into: Into, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sales = into()
    before = files(base)
    statement = additions._TABULARS
    monkeypatch.setattr(
        statement, "_text", statement._text.replace(b"'100'", b"'60000'")
    )  # it waits until the session is terminated
    end = """
        select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'lakewarden hot' and wait_event_type = 'Lock' and datname = current_database()
    """

    def terminate() -> None:
        with psycopg.connect(os.environ["LAKEWARDEN__DATABASE__URL"], autocommit=True) as ending:
            for _ in range(200):
                if ending.execute(end).fetchall():
                    return
                threading.Event().wait(0.05)

    with elsewhere(TAKES_ORDERS):
        thread = threading.Thread(target=terminate)
        thread.start()
        with pytest.raises(CommitStateUnknown):
            create_together(table(sales, "orders"))
        thread.join()
    eventually(lambda: len(files(base) - before) == 1)


def test_idle_connections_that_were_closed_do_not_fail_a_creation(into: Into) -> None:
    sales = into()
    assert all(create_together(*(table(sales, f"t{number}") for number in range(5))))
    assert connections._idle
    with psycopg.connect(os.environ["LAKEWARDEN__DATABASE__URL"], autocommit=True) as ending:
        ending.execute("""
            select pg_terminate_backend(pid, 5000) from pg_stat_activity
            where application_name = 'lakewarden hot' and datname = current_database()
        """)
    assert all(create_together(*(table(sales, f"u{number}") for number in range(5))))


def test_a_cancelled_caller_does_not_affect_the_others(into: Into) -> None:
    sales = into()

    async def leave() -> Stored | None:
        leaving = asyncio.create_task(table(sales, "left"))
        staying = asyncio.create_task(table(sales, "stayed"))
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    assert asgi_client.run(leave()) is not None
    eventually(Tabular.objects.filter(name="left").exists)  # what had begun is finished
