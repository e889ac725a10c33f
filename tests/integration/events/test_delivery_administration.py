"""Sinks, what they refused, delivering again and metrics: over REST, on the command line, and in `doctor`."""

from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from click.testing import CliRunner
from django.utils import timezone

from lakewarden import config
from lakewarden.audit.models import AuditEntry
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.cli.events import events
from lakewarden.context import PrincipalId
from lakewarden.doctor import event_sinks
from lakewarden.events import dead_letters
from lakewarden.events.models import DeadLetter, EventSink, LoggedEvent
from lakewarden.events.sinks.interface import Message, Refused
from tenants import access
from tests.installation import ADMIN
from tests.integration.events.events import all_moved, change
from tests.servers.asgi_client import AsgiClient

SINKS = "/management/v1/server/event-sink"
LETTERS = "/management/v1/server/event-dead-letter"


@pytest.fixture
def operator(admin: AsgiClient) -> AsgiClient:
    ledger.give([access.SERVER], [(PrincipalId("oidc~robot"), Privilege.OPERATOR)], granted_by=ADMIN)
    return admin.as_user("robot")


def refuse(number: int, reason: str = "too large") -> None:
    body = f'{{"type": "updateTable", "partitionkey": "t", "data": {{"version": {number}}}}}'.encode()
    dead_letters.keep("lake", [Refused(Message(number, uuid4(), "updateTable", "t", body), reason)])


@pytest.fixture
def sink(admin: AsgiClient) -> EventSink:
    """It has received the first of three events, and refused two others."""
    LoggedEvent.objects.all().delete()
    all_moved()
    start = LoggedEvent.objects.order_by("position").last()
    for number in range(3):
        change("t", number)
    all_moved()
    at = (start.position if start else 0) + 1
    for number in (1, 2):
        refuse(number)
    return EventSink.objects.create(
        name="lake", delivered=at, failure="the broker is away", failing_since=timezone.now()
    )


def test_administrators_see_how_far_sinks_are(admin: AsgiClient, sink: EventSink) -> None:
    answer = admin.get(SINKS).json()
    (found,) = answer["sinks"]
    assert (found["name"], found["waiting"], found["dead-letters"]) == ("lake", 2, 2)
    assert found["failure"] == "the broker is away"
    assert found["oldest"] <= found["failing-since"]


def test_dead_letters_are_listed_in_pages_and_shown(admin: AsgiClient, sink: EventSink) -> None:
    refuse(2, "still too large")
    first = admin.get(f"{LETTERS}?pageSize=1").json()
    second = admin.get(f"{LETTERS}?pageSize=1&pageToken={first['next-page-token']}").json()
    assert "next-page-token" not in second
    (letter,) = second["dead-letters"]
    assert (letter["attempts"], letter["reason"], letter["again"]) == (2, "still too large", False)
    assert letter["first-at"] < letter["last-at"]
    assert admin.get(f"{LETTERS}/{letter['id']}").json()["event"]["data"] == {"version": 2}
    assert admin.get(f"{LETTERS}?sink=other").json() == {"dead-letters": []}


def test_only_operators_send_and_drop_dead_letters(admin: AsgiClient, operator: AsgiClient, sink: EventSink) -> None:
    first, second = DeadLetter.objects.order_by("id").values_list("id", flat=True)
    for verb in ("send", "drop"):
        assert admin.post(f"{LETTERS}/{verb}", {"sink": "lake"}).status == 403
    assert operator.post(f"{LETTERS}/send", {"sink": "lake", "ids": [first]}).json() == {"count": 1}
    assert operator.post(f"{LETTERS}/drop", {"sink": "lake", "ids": [second]}).json() == {"count": 1}
    assert list(DeadLetter.objects.values_list("id", "again")) == [(first, True)]
    recorded = AuditEntry.objects.filter(object_type="event-sink").order_by("id")
    assert [(each.action, each.object_id) for each in recorded] == [
        ("sendDeadLetters", "lake"),
        ("dropDeadLetters", "lake"),
    ]


def test_a_replay_is_counted_and_done(admin: AsgiClient, operator: AsgiClient, sink: EventSink) -> None:
    body = {"since": (timezone.now() - timedelta(hours=1)).isoformat()}
    assert admin.post(f"{SINKS}/lake/replay", body).status == 403
    logged = LoggedEvent.objects.count()
    assert operator.post(f"{SINKS}/lake/replay", {**body, "dry-run": True}).json()["events"] == logged
    assert EventSink.objects.get(name="lake").delivered == sink.delivered
    assert operator.post(f"{SINKS}/lake/replay", body).json()["events"] == logged
    assert EventSink.objects.get(name="lake").delivered == 0
    assert AuditEntry.objects.filter(action="replayEvents", object_id="lake").count() == 1


@pytest.mark.parametrize(
    ("path", "body", "status", "named"),
    [
        (f"{SINKS}/laek/replay", {"since": "2026-11-22T12:00:00Z"}, 404, "known: lake"),
        (f"{SINKS}/lake/replay", {}, 400, "since"),
        (f"{SINKS}/lake/replay", {"since": "yesterday"}, 400, "since"),
        (f"{LETTERS}/send", {}, 400, "sink"),
        (f"{LETTERS}/send", {"sink": "laek"}, 404, "known: lake"),
        (f"{LETTERS}/drop", {"sink": "lake", "ids": []}, 400, "ids"),
        (f"{LETTERS}/drop", {"sink": "lake", "ids": ["a"]}, 400, "ids"),
        (f"{LETTERS}/drop", {"sink": "lake", "ids": [2**63]}, 400, "ids"),
    ],
    ids=str,
)
def test_wrong_requests_are_named(
    operator: AsgiClient, sink: EventSink, *, path: str, body: dict[str, object], status: int, named: str
) -> None:
    answer = operator.post(path, body)
    assert answer.status == status, answer.body
    assert named in answer.json()["error"]["message"]


@pytest.mark.parametrize("identifier", ["0", "12345", "x", "9" * 30])
def test_a_dead_letter_that_does_not_exist(admin: AsgiClient, sink: EventSink, identifier: str) -> None:
    assert admin.get(f"{LETTERS}/{identifier}").status in {400, 404}


def test_the_oldest_dead_letters_go_beyond_the_limit(
    admin: AsgiClient, sink: EventSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = config.current()
    limited = now.events.model_copy(update={"dead_letters_of_one_sink": 3})
    monkeypatch.setattr(config, "current", lambda: now.model_copy(update={"events": limited}))
    for number in range(3, 6):
        refuse(number)
    assert list(DeadLetter.objects.order_by("id").values_list("position", flat=True)) == [3, 4, 5]


def test_metrics_are_those_of_prometheus(admin: AsgiClient, client: AsgiClient, sink: EventSink) -> None:
    answer = admin.get("/management/v1/server/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=1.0.0")
    lines = answer.body.decode().splitlines()
    assert 'lakewarden_event_sink_lag_events{sink="lake"} 2.0' in lines
    assert 'lakewarden_event_sink_dead_letters{sink="lake"} 2.0' in lines
    assert 'lakewarden_event_sink_sent_total{sink="lake"} 0.0' in lines
    assert any(each.startswith('lakewarden_event_sink_oldest_seconds{sink="lake"} ') for each in lines)
    assert client.as_user("stranger").get("/management/v1/server/metrics").status == 403


def test_the_doctor_tells_which_sinks_wait_and_why(database_url: str, sink: EventSink) -> None:
    with psycopg.connect(database_url) as connection:
        found = [(each.state.value, each.sentence) for each in event_sinks.examine(connection)]
    assert [state for state, _ in found] == ["warn", "warn"]
    assert "2 events wait: the broker is away" in found[0][1]
    assert "refused 2 events" in found[1][1]


def ran(*arguments: str) -> str:
    done = CliRunner().invoke(events, arguments)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_command_line_handles_dead_letters(sink: EventSink) -> None:
    first, second = DeadLetter.objects.order_by("id").values_list("id", flat=True)
    listed = ran("dead-letters", "list", "--sink", "lake").splitlines()
    assert listed[0].startswith(f"{first}: lake, updateTable ")
    assert "1 attempt, last" in listed[0]
    assert '"version": 1' in ran("dead-letters", "show", str(first))
    assert ran("dead-letters", "send", "--sink", "lake", str(first)) == "1 event will be sent once more to 'lake'\n"
    assert "will be sent once more" in ran("dead-letters", "list", "--limit", "1")
    assert ran("dead-letters", "drop", "--sink", "lake", str(second)) == "1 event of 'lake' was dropped\n"
    assert "2 events wait, the oldest since" in ran("status")
    assert "5 events would be delivered again" in ran("replay", "--sink", "lake", "--since", "2026-11-01", "--dry-run")
    for wrong in (["drop", "--sink", "lake"], ["show", "999"], ["send", "--sink", "laek"]):
        assert CliRunner().invoke(events, ["dead-letters", *wrong]).exit_code != 0
