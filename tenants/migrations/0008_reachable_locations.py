"""Places that engines can still reach after their object is gone, and how long earlier profiles gave access."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0007_storage_credential_type")]
    operations = [
        migrations.CreateModel(
            name="ReachableLocation",
            fields=[
                ("location", models.TextField(primary_key=True, serialize=False)),
                ("owner_id", models.UUIDField()),
                ("until", models.DateTimeField(db_index=True)),
            ],
            options={"db_table": "reachable_location"},
        ),
        migrations.AddField(
            model_name="warehouse",
            name="access_ends_at",
            field=models.DateTimeField(
                help_text="When the last access ends that engines received under earlier storage profiles.", null=True
            ),
        ),
    ]
