from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("secrets", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("is_this", models.BooleanField(default=True, primary_key=True, serialize=False)),
                ("id", models.UUIDField()),
            ],
            options={
                "db_table": "installation",
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("is_this", True)), name="installation_is_one")
                ],
            },
        ),
    ]
