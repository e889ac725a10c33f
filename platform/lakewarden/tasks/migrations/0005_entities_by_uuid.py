"""Tasks that end a soft deletion name the table or view by the id that callers know now."""

from django.db import migrations

TELL = """
    update task k set entity_id = t.uuid::text from tabular t
    where t.warehouse_id = k.warehouse_id and k.queue_name = 'soft_deletion' and k.entity_type = t.kind
        and k.entity_id = t.id::text and t.uuid <> t.id
"""


class Migration(migrations.Migration):
    dependencies = [("lakewarden_tasks", "0004_turns_of_projects"), ("catalog", "0013_one_id")]
    operations = [migrations.RunSQL(TELL, migrations.RunSQL.noop)]
