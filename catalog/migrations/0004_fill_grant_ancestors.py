"""Grants that were given before they knew what their objects lie in."""

from django.db import migrations

_FILL = """
    update authz_grant g set ancestors = array[g.project_id] where g.object_type in ('warehouse', 'role');
    update authz_grant g
    set ancestors = array[g.project_id, n.warehouse_id::text] || n.lineage[:cardinality(n.lineage) - 1]::text[]
    from namespace n where g.object_type = 'namespace' and g.object_id = n.id::text;
    update authz_grant g set ancestors = array[g.project_id, n.warehouse_id::text] || n.lineage::text[]
    from tabular t join namespace n on n.id = t.namespace_id
    where g.object_type in ('table', 'view') and g.object_id = t.id::text;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("authz", "0003_grant_ancestors"),
        ("catalog", "0003_protection_and_statistics"),
    ]

    operations = [migrations.RunSQL(_FILL, migrations.RunSQL.noop)]
