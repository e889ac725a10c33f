"""Roles that are not bound to a group get the provider id that clients of the management API expect.

A release before this one serves them as before: it only writes the id, and never compares it.
"""

from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def _renamed(before: str, after: str) -> migrations.RunPython:
    def rename(apps: StateApps, _editor: BaseDatabaseSchemaEditor) -> None:
        apps.get_model("tenants", "Role").objects.filter(provider_id=before).update(provider_id=after)

    return migrations.RunPython(rename, migrations.RunPython.noop)


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_left_locations")]

    operations = [
        migrations.AlterField("role", "provider_id", models.TextField(default="lakekeeper")),
        _renamed("lakewarden", "lakekeeper"),
    ]
