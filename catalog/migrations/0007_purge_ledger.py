"""What purges have removed (see lakewarden.tasks.purge_ledger), and where they are still to come."""

from django.db import migrations

_CREATE = """
    create table purge_ledger (
        task_id uuid not null references task (id) on delete cascade,
        attempt integer not null,
        location text not null,
        started_at timestamptz not null default now(),
        finished_at timestamptz,
        files bigint not null default 0,
        bytes bigint not null default 0,
        folders bigint not null default 0,
        primary key (task_id, attempt)
    );
    create table purge_ledger_path (
        task_id uuid not null references task (id) on delete cascade,
        attempt integer not null,
        path text not null,
        bytes bigint not null
    );
    create index purge_ledger_path_task on purge_ledger_path (task_id);
    create table purge_intent (
        task_id uuid primary key references task (id) on delete cascade,
        attempt integer not null,
        entries bytea not null,
        announced_at timestamptz not null default now()
    );
    create index task_purge_place on task (lock text_pattern_ops)
        where queue_name = 'tabular_purge' and (outcome is null or outcome = 'FAILED');
"""
_DROP = "drop index task_purge_place; drop table purge_intent; drop table purge_ledger_path; drop table purge_ledger"


class Migration(migrations.Migration):
    dependencies = [("catalog", "0006_soft_deletion")]
    operations = [migrations.RunSQL(_CREATE, _DROP)]
