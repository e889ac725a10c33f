"""The vocabulary of tags of each project."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0004_own_provider_as_clients_expect_it'),
    ]

    operations = [
        migrations.CreateModel(
            name='TagDefinition',
            fields=[
                ('id', models.UUIDField(primary_key=True, serialize=False)),
                ('name', models.TextField()),
                ('name_key', models.TextField()),
                ('description', models.TextField(null=True)),
                ('scope', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('value_kind', models.TextField(choices=[('marker', 'Marker'), ('free-text', 'Free Text'), ('enumerated', 'Enumerated')])),
                ('allowed_values', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), null=True, size=None)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(null=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='tenants.project')),
            ],
            options={
                'db_table': 'tag_definition',
                'constraints': [models.UniqueConstraint(fields=('project', 'name_key'), name='tag_definition_name_unique'), models.CheckConstraint(condition=models.Q(models.Q(('allowed_values__isnull', False), ('value_kind', 'enumerated')), models.Q(('allowed_values__isnull', True), ('value_kind__in', ['marker', 'free-text'])), _connector='OR'), name='tag_definition_values_only_if_enumerated')],
            },
        ),
    ]
