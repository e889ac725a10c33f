"""Leases of the sockets that are open; requests are recognised without their positions."""

import django.db.models.deletion
from django.db import migrations, models


_WITH_THE_WAREHOUSE = """
    alter table ingest_connection add constraint ingest_connection_warehouse_fk
        foreign key (warehouse_id) references warehouse (id) on delete cascade
"""


class Migration(migrations.Migration):

    dependencies = [
        ('ingest', '0001_log'),
        ('tenants', '0007_storage_credential_type'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='ingestrequest',
            name='position',
        ),
        migrations.CreateModel(
            name='IngestConnection',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('server', models.UUIDField(help_text='The process that holds the socket, since its start.')),
                ('address', models.TextField()),
                ('principal', models.TextField()),
                ('source_id', models.TextField()),
                ('until', models.DateTimeField()),
                ('warehouse', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='tenants.warehouse')),
            ],
            options={
                'db_table': 'ingest_connection',
                'indexes': [models.Index(fields=['warehouse', 'principal', 'source_id'], name='ingest_connection_source'), models.Index(fields=['address'], name='ingest_connection_address'), models.Index(fields=['server'], name='ingest_connection_server')],
            },
        ),
        migrations.RunSQL(_WITH_THE_WAREHOUSE, migrations.RunSQL.noop),
    ]
