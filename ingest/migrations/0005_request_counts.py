"""Requests are counted, so that a caller cannot fill the database with them.

Servers of the release before do not count: what they have received is not limited until it is forgotten, a day later.
"""

import django.db.models.deletion
from django.db import migrations, models

# they are updated for each group of requests, and find room on their page
_WITH_THE_WAREHOUSE = """
    alter table ingest_request_count add constraint ingest_request_count_warehouse_fk
        foreign key (warehouse_id) references warehouse (id) on delete cascade;
    alter table ingest_request_count set (fillfactor = 50);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('ingest', '0004_fallback_position'),
        ('tenants', '0007_storage_credential_type'),
    ]

    operations = [
        migrations.CreateModel(
            name='IngestRequestCount',
            fields=[
                ('pk', models.CompositePrimaryKey('warehouse_id', 'principal', 'began_at', blank=True, editable=False, primary_key=True, serialize=False)),
                ('principal', models.TextField()),
                ('began_at', models.DateTimeField()),
                ('requests', models.BigIntegerField()),
                ('warehouse', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='tenants.warehouse')),
            ],
            options={
                'db_table': 'ingest_request_count',
            },
        ),
        migrations.RunSQL(_WITH_THE_WAREHOUSE, migrations.RunSQL.noop),
    ]
