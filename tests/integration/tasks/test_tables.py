"""The app's models say what its tables are; a database of the release before becomes this one's without loss."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, models

from lakewarden.config import PREFIX
from lakewarden.tasks.models import PurgeLedger, Task, TaskAttempt, TaskQueueConfig
from tenants.models import Warehouse
from tests.integration.tasks.purges import ask, fill, run, sql
from tests.servers.lakewarden_serve import prepared

MODELS = list(apps.get_app_config("lakewarden_tasks").get_models())
COLUMNS = """
    select column_name, is_nullable = 'YES' from information_schema.columns
    where table_schema = current_schema and table_name = %s
"""
NAMED = """
    select conname from pg_constraint where conrelid = %s::regclass and contype = 'c'
    union select indexrelid::regclass::text from pg_index where indrelid = %s::regclass
"""


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_model_is_the_table(model: type[models.Model]) -> None:
    table = model._meta.db_table
    assert dict(sql(COLUMNS, table)) == {field.column: field.null for field in model._meta.local_concrete_fields}
    named = {name for (name,) in sql(NAMED, table, table)}
    wanted = {each.name for each in (*model._meta.constraints, *model._meta.indexes)}
    assert wanted <= named
    assert {name for name in named - wanted if not name.endswith("_pkey")} == set()
    assert list(model._default_manager.all()) == []


def test_rows_are_read_as_models(warehouse: Warehouse, tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "sales" / "orders"
    expected = fill(folder, ["a", "b"])
    task_id = ask(warehouse, folder)
    run(task_id)
    assert Task.objects.get(id=task_id).outcome == "SUCCESS"
    assert TaskAttempt.objects.get(pk=(task_id, 1)).status == "SUCCESS"
    assert PurgeLedger.objects.get(task_id=task_id).files == expected.files


@contextmanager
def using(name: str) -> Iterator[None]:
    settings = connection.settings_dict
    before = settings["NAME"]
    connection.close()
    settings["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        settings["NAME"] = before


def test_a_database_of_the_release_before_keeps_its_tasks() -> None:
    with prepared({f"{PREFIX}OPENID__OIDC__ISSUER": "https://issuer.invalid"}) as server:
        with psycopg.connect(server.settings[f"{PREFIX}DATABASE__URL"], autocommit=True) as database:
            name = str(database.execute("select current_database()").fetchone()[0])  # type: ignore[index]
        with using(name):
            call_command("migrate", "lakewarden_tasks", "0001", verbosity=0)
            sql(
                "insert into task (id, project_id, queue_name, task_name, arguments, job_id, entity_type, entity_id, "
                "scheduled_for) select gen_random_uuid(), 'p', 'q', 't', '{}', n, 'table', 'e', now() "
                "from generate_series(1, 3) n"
            )
            sql("insert into task_attempt (task_id, attempt, scheduled_for) select id, 1, now() from task")
            sql("insert into task_queue_config (project_id, queue_name, settings) values ('p', 'q', '{\"n\": 1}')")
            sql("insert into purge_ledger_path (task_id, attempt, path, bytes) select id, 1, 'a', 5 from task")
            before = sql("select * from task order by id")
            call_command("migrate", verbosity=0)
            assert sql("select * from task order by id") == before
            assert TaskAttempt.objects.count() == 3
            assert TaskQueueConfig.objects.get().settings == {"n": 1}
            assert sql("select count(distinct id), sum(bytes) from purge_ledger_path") == [(3, 15)]
            call_command("migrate", "lakewarden_tasks", "0001", verbosity=0)
            assert sql("select count(*) from task") == [(3,)]
