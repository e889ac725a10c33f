"""The tables of `lakewarden.tasks`: background work as the management API shows it, and how its queues are set."""

from django.db import migrations

_CREATE = """
    create table task (
        id uuid primary key,
        project_id text not null,
        warehouse_id uuid,
        queue_name text not null,
        task_name text not null,
        arguments jsonb not null,
        lock text,
        job_id bigint not null,
        entity_type text not null,
        entity_id text not null,
        entity_name text[] not null default '{}',
        parent_id uuid,
        scheduled_for timestamptz not null,
        attempt integer not null default 0,
        progress double precision not null default 0,
        details jsonb,
        message text,
        last_heartbeat_at timestamptz,
        cancel_requested boolean not null default false,
        resume_at timestamptz,
        outcome text,
        created_at timestamptz not null default now(),
        updated_at timestamptz,
        finished_at timestamptz,
        constraint task_outcome_known check (outcome in ('SUCCESS', 'FAILED', 'CANCELLED')),
        constraint task_finished_with_outcome check ((outcome is null) = (finished_at is null)),
        constraint task_progress_is_a_part check (progress between 0 and 1)
    );
    create index task_of_warehouse on task (warehouse_id, id) where warehouse_id is not null;
    create index task_of_project on task (project_id, id) where warehouse_id is null;
    create index task_of_entity on task (entity_id);
    create index task_job on task (job_id);
    create index task_parent on task (parent_id) where parent_id is not null;
    create index task_finished on task (project_id, finished_at) where outcome in ('SUCCESS', 'CANCELLED');

    create table task_attempt (
        task_id uuid not null references task (id) on delete cascade,
        attempt integer not null,
        status text not null default 'RUNNING',
        scheduled_for timestamptz not null,
        started_at timestamptz not null default now(),
        ended_at timestamptz,
        progress double precision not null default 0,
        details jsonb,
        message text,
        primary key (task_id, attempt),
        constraint task_attempt_ended_or_running check ((status = 'RUNNING') = (ended_at is null))
    );

    create table task_queue_config (
        project_id text not null,
        warehouse_id uuid,
        queue_name text not null,
        settings jsonb not null,
        max_silence_s integer,
        updated_at timestamptz not null default now()
    );
    create unique index task_queue_config_one on task_queue_config
        (project_id, coalesce(warehouse_id, '00000000-0000-0000-0000-000000000000'::uuid), queue_name);
"""
_DROP = "drop table task_queue_config; drop table task_attempt; drop table task"


class Migration(migrations.Migration):
    dependencies = [("catalog", "0004_fill_grant_ancestors")]
    operations = [migrations.RunSQL(_CREATE, _DROP)]
