"""Commits that share their work and have idempotency keys: each key counts once."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb

from catalog.models import Tabular
from catalog.services.pointer import Stored
from lakewarden.events.models import OutboxEvent
from lakewarden.idempotency.models import IdempotencyRecord
from tests.integration.catalog.lake import Lake, set_properties
from tests.integration.catalog.observed import Recorded, eventually, metadata_files, own_properties, pointed_at
from tests.integration.catalog.together import Committing, kinds, together


def test_a_key_that_was_used_excludes_only_its_own_commit(
    lake: Lake, base: Path, committing: Committing, recorded: Recorded
) -> None:
    used, fresh = uuid4(), uuid4()
    assert kinds(together(committing.to("bills", set_properties(first="x"), key=used))) == [Stored]
    outcomes = together(
        committing.to("orders", set_properties(a="1")),
        committing.to("orders", set_properties(b="1"), key=used),
        committing.to("orders", set_properties(c="1"), key=fresh),
        committing.to("bills", set_properties(d="1")),
    )
    assert kinds(outcomes) == [Stored, None, Stored, Stored]
    assert own_properties(lake, "orders") == {"a", "c"}
    assert recorded() == ["updateTable"] * 4
    kept = IdempotencyRecord.objects.get(key=fresh)
    assert (kept.principal_id, kept.object_id) == ("oidc~engine", str(Tabular.objects.get(name="orders").uuid))
    assert kept.data == OutboxEvent.objects.get(data__version=3, data__name="orders").data
    eventually(lambda: metadata_files(base) == pointed_at(lake, "orders", "bills"))


def test_one_key_twice_at_once_is_one_change(lake: Lake, committing: Committing, recorded: Recorded) -> None:
    key = uuid4()
    commits = [committing.to(name, set_properties(a="1"), key=key) for name in ("orders", "orders", "bills")]
    assert kinds(together(*commits)) == [Stored, None, None]
    assert recorded() == ["updateTable"]


def test_a_key_that_is_in_use_elsewhere_delays_nobody(
    lake: Lake, committing: Committing, other: psycopg.Connection[Any]
) -> None:
    """Another replica is in the middle of the same request."""
    key = uuid4()
    other.execute(
        "select pg_advisory_xact_lock(1818978660, hashtext(%s || %s::uuid::text))", [committing.caller, str(key)]
    )
    other.execute(
        "insert into idempotency_record (principal_id, key, fingerprint, attempt, object_type, object_id, data, "
        "refusal_body, created_at) values (%s, %s, '', gen_random_uuid(), '', '', %s, '', now())",
        [committing.caller, key, Jsonb({})],
    )
    commits = [
        committing.to("orders", set_properties(a="1"), key=key),
        committing.to("orders", set_properties(b="1")),
        committing.to("bills", set_properties(c="1")),
    ]
    assert kinds(together(*commits)) == [None, Stored, Stored]
    assert own_properties(lake, "orders") == {"b"}
