"""Tags on warehouses, namespaces, tables, views and columns."""

import django.db.models.deletion
from django.db import migrations, models


# many statements delete objects, and none of them needs to know of tags
_REFERENCES = """
    alter table tag_attachment
        add constraint tag_attachment_definition_fk foreign key (definition_id) references tag_definition (id),
        add constraint tag_attachment_warehouse_fk
            foreign key (warehouse_id) references warehouse (id) on delete cascade,
        add constraint tag_attachment_namespace_fk
            foreign key (namespace_id) references namespace (id) on delete cascade,
        add constraint tag_attachment_tabular_fk foreign key (tabular_id) references tabular (id) on delete cascade
            deferrable initially immediate
"""


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0013_one_id'),
        ('tenants', '0005_tag_definitions'),
    ]

    operations = [
        migrations.CreateModel(
            name='TagAttachment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('target_type', models.TextField(help_text='A scope of definitions.')),
                ('field_id', models.IntegerField(null=True)),
                ('value', models.TextField(null=True)),
                ('applied_by', models.TextField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(null=True)),
                ('definition', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='tenants.tagdefinition')),
                ('namespace', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, to='catalog.namespace')),
                ('tabular', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, to='catalog.tabular')),
                ('warehouse', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, to='tenants.warehouse')),
            ],
            options={
                'db_table': 'tag_attachment',
                'indexes': [models.Index(fields=['definition', 'id'], name='tag_attachment_definition'), models.Index(condition=models.Q(('namespace__isnull', False)), fields=['namespace'], name='tag_attachment_namespace'), models.Index(fields=['warehouse', 'target_type'], name='tag_attachment_warehouse')],
                'constraints': [models.UniqueConstraint(fields=('tabular', 'namespace', 'warehouse', 'field_id', 'definition'), name='tag_attachment_unique', nulls_distinct=False), models.CheckConstraint(condition=models.Q(models.Q(('field_id__isnull', True), ('namespace__isnull', True), ('tabular__isnull', True), ('target_type', 'warehouse')), models.Q(('field_id__isnull', True), ('namespace__isnull', False), ('tabular__isnull', True), ('target_type', 'namespace')), models.Q(('field_id__isnull', False), ('namespace__isnull', True), ('tabular__isnull', False), ('target_type', 'column')), models.Q(('field_id__isnull', True), ('namespace__isnull', True), ('tabular__isnull', False), models.Q(('target_type__in', ['warehouse', 'namespace', 'column']), _negated=True)), _connector='OR'), name='tag_attachment_has_one_target')],
            },
        ),
        migrations.RunSQL(_REFERENCES, migrations.RunSQL.noop),
    ]
