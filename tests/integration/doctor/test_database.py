"""The doctor against a real database in the states that a person finds it in."""

from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from lakewarden import config
from lakewarden.doctor import database
from lakewarden.doctor.findings import Finding, State
from lakewarden.events.models import OutboxEvent
from tenants.models import Warehouse
from tests.servers import postgres
from tests.servers.asgi_client import AsgiClient


def examined(url: str) -> dict[str, Finding]:
    return {finding.name: finding for finding in database.examine(config.read({"LAKEWARDEN__DATABASE__URL": url}))}


def execute(url: str, command: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(command.encode())


def test_a_healthy_database_is_ok_but_for_the_worker(
    database_url: str, admin: AsgiClient, warehouse: Warehouse
) -> None:
    found = examined(database_url)
    assert {name: finding.state for name, finding in found.items()} == {
        "database": State.OK,
        "sessions": State.OK,
        "migrations": State.OK,
        "bootstrap": State.OK,
        "secrets": State.WARN,
        f"warehouse 'lake' ({warehouse.id})": State.OK,
        "worker": State.WARN,
        "audit": State.OK,
        "outbox": State.OK,
        "event log": State.OK,
        "metrics reports": State.OK,
        "endpoint statistics": State.OK,
        "warehouse statistics": State.OK,
        "idempotency keys": State.OK,
        "budgets": State.OK,
        "requests with change data": State.OK,
    }
    assert f"{OutboxEvent.objects.count()} rows" in found["outbox"].sentence


def test_nobody_has_bootstrapped(database_url: str, client: AsgiClient) -> None:
    assert "lakewarden bootstrap" in (examined(database_url)["bootstrap"].fix or "")


def test_an_empty_database_says_to_migrate(database_url: str) -> None:
    with postgres.shared() as server:
        url = server.create_database("lakewarden_empty")
        found = examined(url)
        server.drop_database("lakewarden_empty")
    assert set(found) == {"database", "sessions", "migrations"}
    assert found["migrations"].state is State.FAIL
    assert found["migrations"].fix == "run `lakewarden migrate`"


def test_a_pending_migration_is_named(database_url: str, database: None) -> None:
    execute(database_url, "update django_migrations set app = 'gone' where app = 'tenants' and name = '0001_initial'")
    found = examined(database_url)["migrations"]
    execute(database_url, "update django_migrations set app = 'tenants' where app = 'gone'")
    assert found.state is State.FAIL
    assert "newer than this version: it has gone.0001_initial" in found.sentence
    execute(database_url, "delete from django_migrations where app = 'tenants' and name = '0001_initial'")
    found = examined(database_url)["migrations"]
    execute(
        database_url,
        "insert into django_migrations (app, name, applied) values ('tenants', '0001_initial', now())",
    )
    assert found.sentence == "1 are pending: tenants.0001_initial"


def test_a_dead_worker_a_living_one_and_failed_jobs(database_url: str, database: None) -> None:
    execute(database_url, "insert into procrastinate_workers (last_heartbeat) values (now() - interval '1 hour')")
    dead = examined(database_url)["worker"]
    assert dead.state is State.WARN
    assert "no sign of life since" in dead.sentence
    execute(database_url, "insert into procrastinate_workers default values")
    execute(
        database_url,
        "insert into procrastinate_jobs (queue_name, task_name, status) values ('q', 'purge', 'failed'), ('q', 'x', 'todo')",
    )
    found = examined(database_url)
    assert (found["worker"].state, found["worker"].sentence) == (State.OK, "1 alive, 1 jobs wait or run")
    assert found["jobs"].state is State.WARN


def test_what_should_be_gone_and_what_was_too_much_is_told(database_url: str, warehouse: Warehouse) -> None:
    execute(database_url, "update outbox_event set created_at = now() - interval '2 hours'")
    execute(
        database_url,
        "insert into event_log (at, id, type, object_type, object_id, actor, assumed_role, request_id, data, created_at)"
        " values (now() - interval '9 days 1 minute', gen_random_uuid(), 'x', 'x', 'x', 'x', '', '', '{}', now())",
    )
    execute(
        database_url,
        "insert into spending (budget, spender, period, asked, refused) values ('metrics-reports', 'eve', now(), 9, 7)",
    )
    execute(
        database_url,
        "insert into audit_entry (at, actor, action, object_type, object_id, outcome, request_id, user_agent, details,"
        " count) values (now(), 'x', 'loseRefusals', 'server', 'server', 'lost', '', '', '{}', 5)",
    )
    found = examined(database_url)
    assert found["outbox"].state is State.WARN
    assert "a worker moves them to the event log): older rows should be gone" in found["outbox"].sentence
    assert "kept for 7 days (events.retention_days): older rows should be gone" in found["event log"].sentence
    assert "lakewarden work" in (found["event log"].fix or "")
    assert found["budget metrics-reports"].sentence == "7 requests of the last day exceeded it, most of them by 'eve'"
    assert found["audit losses"].sentence.startswith("5 decisions and refusals")


def test_a_warehouse_without_its_directory_or_with_a_strange_profile_fails(
    database_url: str, warehouse: Warehouse
) -> None:
    name = f"warehouse 'lake' ({warehouse.id})"
    Warehouse.objects.update(storage_profile={"type": "local", "base-path": "/proc/nowhere"})
    assert examined(database_url)[name].state is State.FAIL
    Warehouse.objects.update(storage_profile={"type": "tape"})
    assert examined(database_url)[name].state is State.FAIL


def test_a_wrong_password_is_told_and_not_shown(database_url: str) -> None:
    netloc = urlsplit(database_url).netloc.rpartition("@")[2]
    url = urlunsplit(urlsplit(database_url)._replace(netloc=f"postgres:pa%24s-wd@{netloc}"))
    found = examined(url)["database"]
    assert "rejects the user or the password" in found.sentence
    assert "s-wd" not in str(found)


def test_nothing_listens_at_the_address(database_url: str) -> None:
    found = examined("postgresql://u:pa%24s-wd@127.0.0.1:9/lake")["database"]
    assert found.state is State.FAIL
    assert "127.0.0.1:9/lake cannot be reached" in found.sentence
    assert "s-wd" not in str(found)


def test_a_missing_database_says_to_create_it(database_url: str) -> None:
    url = urlunsplit(urlsplit(database_url)._replace(path="/lakewarden_gone"))
    assert "createdb" in (examined(url)["database"].fix or "")


def test_an_old_postgres_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "OLDEST", 99)
    found = examined(database_url)
    assert set(found) == {"database"}
    assert "99 is the oldest that works" in found["database"].sentence
