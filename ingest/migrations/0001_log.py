"""The durable log of change data, and what the gateway and the pipeline say to each other."""

import django.contrib.postgres.fields
import django.contrib.postgres.functions
import django.db.models.deletion
from django.db import migrations, models


# Flushed batches go with their partitions. Content is JSON: where lz4 is missing, it is not compressed, because the
# only other way costs more than everything else that is done for a batch.
_BATCHES = """
    create table ingest_batch (
        warehouse_id uuid not null,
        position bigint not null,
        source_id text not null,
        principal text not null,
        sequence_number bigint,
        received_at timestamptz not null,
        events int not null,
        bytes int not null,
        encoding smallint not null default 0,
        tables jsonb not null,
        content bytea not null,
        constraint ingest_batch_key primary key (warehouse_id, position)
    ) partition by range (warehouse_id, position);
    do $$ begin
        alter table ingest_batch alter column content set compression lz4;
    exception when feature_not_supported then
        alter table ingest_batch alter column content set storage external;
    end $$;
    create table ingest_batch_default partition of ingest_batch default;
"""
# rows that are updated for each group of batches find room on their page
_WITH_THE_WAREHOUSE = """
    alter table ingest_log_head add constraint ingest_log_head_warehouse_fk
        foreign key (warehouse_id) references warehouse (id) on delete cascade;
    alter table ingest_source add constraint ingest_source_warehouse_fk
        foreign key (warehouse_id) references warehouse (id) on delete cascade;
    alter table ingest_request add constraint ingest_request_warehouse_fk
        foreign key (warehouse_id) references warehouse (id) on delete cascade;
    alter table ingest_flush_request add constraint ingest_flush_request_warehouse_fk
        foreign key (warehouse_id) references warehouse (id) on delete cascade;
    alter table ingest_pipeline add constraint ingest_pipeline_warehouse_fk
        foreign key (warehouse_id) references warehouse (id) on delete cascade;
    alter table ingest_log_head set (fillfactor = 30);
    alter table ingest_source set (fillfactor = 50);
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('tenants', '0007_storage_credential_type'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(_BATCHES, 'drop table ingest_batch')],
            state_operations=[
                migrations.CreateModel(
                    name='IngestBatch',
                    fields=[
                        ('pk', models.CompositePrimaryKey('warehouse_id', 'position', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('warehouse_id', models.UUIDField()),
                        ('position', models.BigIntegerField()),
                        ('source_id', models.TextField()),
                        ('principal', models.TextField()),
                        ('sequence_number', models.BigIntegerField(help_text='Null for what came in a request.', null=True)),
                        ('received_at', models.DateTimeField()),
                        ('events', models.IntegerField()),
                        ('bytes', models.IntegerField(help_text='Of the content before it was compressed.')),
                        ('encoding', models.SmallIntegerField(default=0, help_text='0: plain, 1: gzip.')),
                        ('tables', models.JSONField()),
                        ('content', models.BinaryField()),
                    ],
                    options={
                        'db_table': 'ingest_batch',
                    },
                ),
            ],
        ),
        migrations.CreateModel(
            name='IngestLogHead',
            fields=[
                ('warehouse', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, serialize=False, to='tenants.warehouse')),
                ('log_id', models.UUIDField(db_default=django.contrib.postgres.functions.RandomUUID(), help_text='Positions mean nothing in another log, such as one made after this one was lost.')),
                ('last_position', models.BigIntegerField(db_default=0, default=0)),
                ('flushed_position', models.BigIntegerField(db_default=0, default=0, help_text='Everything up to it is in snapshots of tables.')),
                ('buffered_batches', models.BigIntegerField(db_default=0, default=0)),
                ('buffered_events', models.BigIntegerField(db_default=0, default=0)),
                ('buffered_bytes', models.BigIntegerField(db_default=0, default=0)),
                ('total_batches', models.BigIntegerField(db_default=0, default=0)),
                ('total_events', models.BigIntegerField(db_default=0, default=0)),
                ('total_bytes', models.BigIntegerField(db_default=0, default=0)),
                ('checks', models.BigIntegerField(db_default=0, default=0, help_text='Batches that were compared with earlier ones.')),
                ('duplicates', models.BigIntegerField(db_default=0, default=0)),
                ('fallback_batches', models.BigIntegerField(db_default=0, default=0)),
                ('newest_at', models.DateTimeField(null=True)),
                ('flushed_at', models.DateTimeField(null=True)),
                ('partitioned_until', models.BigIntegerField(db_default=0, default=0, help_text='Positions below it have a partition, or lie in the default one.')),
            ],
            options={
                'db_table': 'ingest_log_head',
                'constraints': [models.CheckConstraint(condition=models.Q(('flushed_position__gte', 0), ('flushed_position__lte', models.F('last_position'))), name='ingest_flushed_was_received'), models.CheckConstraint(condition=models.Q(('buffered_batches__gte', 0), ('buffered_bytes__gte', 0), ('buffered_events__gte', 0)), name='ingest_buffered_is_counted')],
            },
        ),
        migrations.CreateModel(
            name='IngestPipeline',
            fields=[
                ('warehouse', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, serialize=False, to='tenants.warehouse')),
                ('instance', models.TextField()),
                ('heartbeat_at', models.DateTimeField()),
                ('state', models.TextField(choices=[('idle', 'Idle'), ('flushing', 'Flushing'), ('recovering', 'Recovering'), ('error', 'Error')])),
                ('error', models.TextField(db_default='', default='')),
                ('last_flush_at', models.DateTimeField(null=True)),
                ('last_flush', models.JSONField(help_text='The members of the answer to a flush.', null=True)),
                ('freshness', models.JSONField(default=dict, help_text="Milliseconds from an event's timestamp to the snapshot that shows it.")),
            ],
            options={
                'db_table': 'ingest_pipeline',
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['idle', 'flushing', 'recovering', 'error'])), name='ingest_pipeline_state_known')],
            },
        ),
        migrations.CreateModel(
            name='IngestSource',
            fields=[
                ('pk', models.CompositePrimaryKey('warehouse_id', 'principal', 'source_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('principal', models.TextField()),
                ('source_id', models.TextField()),
                ('shard_name', models.TextField(db_default='', default='')),
                ('last_received_sequence', models.BigIntegerField(help_text='Null: its first batch sets it.', null=True)),
                ('last_acked_sequence', models.BigIntegerField(null=True)),
                ('recent_positions', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('recent_checksums', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('batches', models.BigIntegerField(db_default=0, default=0)),
                ('events', models.BigIntegerField(db_default=0, default=0)),
                ('connected_at', models.DateTimeField()),
                ('last_activity_at', models.DateTimeField()),
                ('warehouse', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='tenants.warehouse')),
            ],
            options={
                'db_table': 'ingest_source',
            },
        ),
        migrations.CreateModel(
            name='IngestFlushRequest',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('requested_at', models.DateTimeField()),
                ('requested_by', models.TextField()),
                ('upto_position', models.BigIntegerField()),
                ('state', models.TextField(choices=[('pending', 'Pending'), ('done', 'Done'), ('failed', 'Failed')], db_default='pending', default='pending')),
                ('result', models.JSONField(help_text='The members of the answer to a flush, or `error`.', null=True)),
                ('warehouse', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='tenants.warehouse')),
            ],
            options={
                'db_table': 'ingest_flush_request',
                'indexes': [models.Index(fields=['warehouse', 'state'], name='ingest_flush_request_pending')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'done', 'failed'])), name='ingest_flush_request_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('result__isnull', True), ('state', 'pending')), models.Q(('result__isnull', False), ('state__in', ['done', 'failed'])), _connector='OR'), name='ingest_flush_request_has_result')],
            },
        ),
        migrations.CreateModel(
            name='IngestRequest',
            fields=[
                ('pk', models.CompositePrimaryKey('warehouse_id', 'principal', 'key', blank=True, editable=False, primary_key=True, serialize=False)),
                ('principal', models.TextField()),
                ('key', models.TextField(help_text='What the caller named it by, or what was computed of its content.')),
                ('checksum', models.BinaryField(help_text='Of the content, which is the same if it is repeated.')),
                ('position', models.BigIntegerField()),
                ('received_at', models.DateTimeField()),
                ('warehouse', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='tenants.warehouse')),
            ],
            options={
                'db_table': 'ingest_request',
                'indexes': [models.Index(fields=['received_at'], name='ingest_request_received')],
            },
        ),
        migrations.RunSQL(_WITH_THE_WAREHOUSE, migrations.RunSQL.noop),
    ]
