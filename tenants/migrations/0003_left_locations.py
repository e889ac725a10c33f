"""Where deleted or moved warehouses have left files."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_roles_and_policies")]
    operations = [
        migrations.CreateModel(
            name="LeftLocation",
            fields=[
                ("location", models.TextField(primary_key=True, serialize=False)),
                ("project_id", models.TextField()),
                ("left_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={"db_table": "left_location"},
        ),
    ]
