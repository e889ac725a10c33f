"""The uuid of a table or view is its id for callers, unique in its warehouse."""

from django.db import migrations, models

# Of several with one uuid, the oldest that is not dropped keeps it: a file was copied and registered a second time.
# Each other goes on with the id that it had until now; its metadata keeps the uuid that it was registered with.
SEPARATE = """
    update tabular t
    set uuid = case when exists (
        select 1 from tabular o where o.warehouse_id = t.warehouse_id and o.uuid = t.id and o.id <> t.id
    ) then gen_random_uuid() else t.id end
    from (
        select id, row_number() over (
            partition by warehouse_id, uuid order by deleted_at is not null, created_at, id
        ) as number
        from tabular
    ) same
    where same.id = t.id and same.number > 1
"""
TELL_DELETIONS = """
    update deletion d set object_id = t.uuid from tabular t
    where t.deletion_id = d.id and d.object_type = t.kind and d.object_id = t.id and t.uuid <> t.id
"""


class Migration(migrations.Migration):
    dependencies = [("catalog", "0012_number_of_generic_tables")]

    operations = [
        migrations.RunSQL([SEPARATE, TELL_DELETIONS], migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="tabular", name="tabular_deleted_newest"),
        migrations.AddIndex(
            model_name="tabular",
            index=models.Index(
                condition=models.Q(("deleted_at__isnull", False)),
                fields=["warehouse", "-deleted_at", "-uuid"],
                name="tabular_deleted_newest",
            ),
        ),
        migrations.AddConstraint(
            model_name="tabular",
            constraint=models.UniqueConstraint(fields=("warehouse", "uuid"), name="tabular_uuid_unique"),
        ),
        migrations.AlterField(
            model_name="tabular",
            name="id",
            field=models.UUIDField(
                help_text="The key that rights, places and documents hang on.", primary_key=True, serialize=False
            ),
        ),
        migrations.AlterField(
            model_name="tabular",
            name="uuid",
            field=models.UUIDField(help_text="The id that callers know: of its metadata, for its whole life."),
        ),
    ]
