"""Parameters of statements of the event loop, as PostgreSQL reads them."""

from datetime import UTC, datetime

import pytest

from lakewarden.hot.statements import Statement, _sent


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ('{"ü": 1}', '{"ü": 1}'.encode()),
        (b"\x00\xff", b"\x00\xff"),
        (True, b"t"),
        (False, b"f"),
        (datetime(2026, 11, 22, 15, 30, 1, 5, tzinfo=UTC), b"2026-11-22T15:30:01.000005+00:00"),
    ],
)
def test_values_are_sent_as_the_database_reads_them(value: object, sent: bytes) -> None:
    assert _sent(value) == sent


def test_names_become_numbers_however_often_they_occur() -> None:
    statement = Statement("select %(b)s::text, %(a)s::bytea, %(b)s::text")
    assert (statement._text, statement._names) == (b"select $1::text, $2::bytea, $1::text", ["b", "a"])
