"""What maintenance did to tables, for their next turn and for people."""

import django.db.models.deletion
from django.db import migrations, models

_WITH_THE_WAREHOUSE = """
    alter table ingest_maintenance_run add constraint ingest_maintenance_run_warehouse_fk
        foreign key (warehouse_id) references warehouse (id) on delete cascade;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('ingest', '0002_connections'),
        ('tenants', '0008_reachable_locations'),
    ]

    operations = [
        migrations.CreateModel(
            name='IngestMaintenanceRun',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('table_name', models.TextField(help_text='Levels and name, with dots, as it was then.')),
                ('operation', models.TextField()),
                ('state', models.TextField(choices=[('done', 'Done'), ('failed', 'Failed')])),
                ('began_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField()),
                ('files_before', models.BigIntegerField(null=True)),
                ('files_after', models.BigIntegerField(null=True)),
                ('bytes_before', models.BigIntegerField(null=True)),
                ('bytes_after', models.BigIntegerField(null=True)),
                ('reason', models.TextField()),
                ('error', models.TextField(db_default='', default='')),
                ('warehouse', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='tenants.warehouse')),
            ],
            options={
                'db_table': 'ingest_maintenance_run',
                'indexes': [models.Index(fields=['warehouse', 'table_name', 'operation', 'ended_at'], name='maintenance_run_last'), models.Index(fields=['warehouse', 'ended_at'], name='maintenance_run_newest')],
                'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['done', 'failed'])), name='maintenance_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('error', ''), ('state', 'done')), models.Q(('state', 'failed'), models.Q(('error', ''), _negated=True)), _connector='OR'), name='maintenance_failure_has_error')],
            },
        ),
        migrations.RunSQL(_WITH_THE_WAREHOUSE, migrations.RunSQL.noop),
    ]
