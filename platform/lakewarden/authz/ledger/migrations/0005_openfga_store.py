from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('authz', '0004_change_log'),
    ]

    operations = [
        migrations.CreateModel(
            name='OpenFgaStore',
            fields=[
                ('name', models.TextField(primary_key=True, serialize=False)),
                ('store_id', models.TextField()),
                ('model_id', models.TextField()),
                ('model_hash', models.TextField()),
                ('filled_at', models.DateTimeField(help_text='Since when it has everything that the ledger has; none: `openfga reconcile` must run.', null=True)),
            ],
            options={
                'db_table': 'openfga_store',
            },
        ),
    ]
