from django.db import migrations, models

# Rows come from one transaction at a time (events/log.py), so positions are in the order of their commits, without
# rows that appear later below a position that has been read. Partitions are dropped by day.
_CREATE = """
    alter table outbox_event add column assumed_role text not null default '';
    create sequence event_log_position_seq as bigint;
    create table event_log (
        position bigint not null default nextval('event_log_position_seq'),
        at timestamptz not null,
        id uuid not null,
        type text not null,
        project_id text,
        object_type text not null,
        object_id text not null,
        actor text not null,
        assumed_role text not null,
        request_id text not null,
        data jsonb not null,
        created_at timestamptz not null,
        constraint event_log_key primary key (at, position)
    ) partition by range (at);
    alter sequence event_log_position_seq owned by event_log.position;
    create index event_log_by_position on event_log (position);
    create table event_log_default partition of event_log default;
"""
_DROP = """
    insert into outbox_event (id, type, project_id, object_type, object_id, actor, request_id, data, created_at)
    select id, type, project_id, object_type, object_id, actor, request_id, data, created_at
    from event_log order by position;
    drop table event_log;
    alter table outbox_event drop column assumed_role;
"""


class Migration(migrations.Migration):
    dependencies = [("events", "0002_sinks")]
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(_CREATE, _DROP)],
            state_operations=[
                migrations.AddField("outboxevent", "assumed_role", models.TextField(db_default="", default="")),
                migrations.CreateModel(
                    name="LoggedEvent",
                    fields=[
                        ("position", models.BigIntegerField(primary_key=True, serialize=False)),
                        ("at", models.DateTimeField()),
                        ("id", models.UUIDField()),
                        ("type", models.TextField()),
                        ("project_id", models.TextField(null=True)),
                        ("object_type", models.TextField()),
                        ("object_id", models.TextField()),
                        ("actor", models.TextField()),
                        ("assumed_role", models.TextField()),
                        ("request_id", models.TextField()),
                        ("data", models.JSONField()),
                        ("created_at", models.DateTimeField(help_text="The time of the change.")),
                    ],
                    options={"db_table": "event_log"},
                ),
            ],
        ),
        migrations.AlterField(
            "eventsink",
            "delivered",
            models.BigIntegerField(default=0, help_text="The position up to which all events were delivered."),
        ),
        migrations.AddField("eventsink", "leased_by", models.TextField(db_default="", default="")),
        migrations.AddField("eventsink", "leased_until", models.DateTimeField(null=True)),
        migrations.AddField("eventsink", "seen_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "eventsink",
            "failure",
            models.TextField(db_default="", default="", help_text="Why the last attempt failed; empty: it did not."),
        ),
        migrations.AddField("eventsink", "failing_since", models.DateTimeField(null=True)),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("sink", models.TextField()),
                ("position", models.BigIntegerField()),
                ("event_id", models.UUIDField()),
                ("event", models.JSONField(help_text="As it would have been delivered (CloudEvents 1.0).")),
                ("reason", models.TextField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "event_dead_letter",
                "constraints": [
                    models.UniqueConstraint(fields=["sink", "position"], name="event_dead_letter_once")
                ],
            },
        ),
    ]
