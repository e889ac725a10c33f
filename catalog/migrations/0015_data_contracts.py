"""Data contracts of warehouses, namespaces, tables and views."""

import django.db.models.deletion
from django.db import migrations, models

# as with tags: many statements delete objects, and none of them needs to know of contracts
_REFERENCES = """
    alter table data_contract
        add constraint data_contract_warehouse_fk
            foreign key (warehouse_id) references warehouse (id) on delete cascade,
        add constraint data_contract_namespace_fk
            foreign key (namespace_id) references namespace (id) on delete cascade,
        add constraint data_contract_tabular_fk foreign key (tabular_id) references tabular (id) on delete cascade
            deferrable initially immediate
"""


def _reference(to: str, *, null: bool = False) -> models.ForeignKey:
    return models.ForeignKey(
        db_constraint=False,
        db_index=False,
        null=null,
        on_delete=django.db.models.deletion.DO_NOTHING,
        to=to,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0014_tag_attachments"),
        ("tenants", "0009_warehouse_contracts"),
    ]

    operations = [
        migrations.CreateModel(
            name="DataContract",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("object", models.UUIDField()),
                ("document", models.JSONField(help_text="The contract as it was set, without defaults.")),
                ("version", models.BigIntegerField(help_text="The warehouse's version of contracts when it was set.")),
                ("set_by", models.TextField()),
                ("set_at", models.DateTimeField()),
                ("namespace", _reference("catalog.namespace", null=True)),
                ("tabular", _reference("catalog.tabular", null=True)),
                ("warehouse", _reference("tenants.warehouse")),
            ],
            options={
                "db_table": "data_contract",
                "indexes": [
                    models.Index(
                        condition=models.Q(("namespace__isnull", False)), fields=["namespace"], name="contract_namespace"
                    ),
                    models.Index(
                        condition=models.Q(("tabular__isnull", False)), fields=["tabular"], name="contract_tabular"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("warehouse", "object"), name="data_contract_unique"),
                    models.CheckConstraint(
                        condition=models.Q(("namespace__isnull", True), ("tabular__isnull", True), _connector="OR"),
                        name="data_contract_has_one_object",
                    ),
                ],
            },
        ),
        migrations.RunSQL(_REFERENCES, migrations.RunSQL.noop),
    ]
