import pytest

from lakewarden import config
from lakewarden.doctor import database
from lakewarden.doctor.findings import State


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://u:p@db.internal:5433/lake", "db.internal:5433/lake"),
        ("postgres://u@db.internal/lake", "db.internal:5432/lake"),
        ("postgresql:///lake?host=/run/postgresql", "localhost:5432/lake"),
    ],
)
def test_an_address_is_shown_without_user_and_password(url: str, place: str) -> None:
    assert database.shown(url) == place


@pytest.mark.parametrize("password", ["se/cret", "se@cret", "se#cret", "se:cret/1", "se?cret@x"])
def test_an_address_with_an_unencoded_password_shows_nothing_of_it(password: str) -> None:
    url = f"postgresql://u:{password}@127.0.0.1:1/lake"
    found = list(database.examine(config.read({"LAKEWARDEN__DATABASE__URL": url})))
    assert [finding.state for finding in found] == [State.FAIL]
    assert "cret" not in str(found[0])


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ('FATAL:  password authentication failed for user "u"', "rejects the user or the password"),
        ("fe_sendauth: no password supplied", "rejects the user or the password"),
        ('FATAL:  role "u" does not exist', "rejects the user or the password"),
        ('FATAL:  database "lake" does not exist', "does not exist on that server"),
        ("connection failed\n\tConnection refused", "cannot be reached: Connection refused"),
        ("", "cannot be reached: no reason is given"),
    ],
)
def test_the_reason_of_no_connection_is_told_apart(reason: str, said: str) -> None:
    assert said in database.unreachable("h:1/lake", reason).sentence
