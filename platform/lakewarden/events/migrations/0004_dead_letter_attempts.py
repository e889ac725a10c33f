from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("events", "0003_event_log")]
    operations = [
        migrations.AddField(
            "deadletter",
            "again",
            models.BooleanField(
                db_default=False, default=False, help_text="Whether a worker will send it once more."
            ),
        ),
        migrations.AddField("deadletter", "attempts", models.IntegerField(db_default=1, default=1)),
        migrations.AddField(
            "deadletter",
            "first_at",
            models.DateTimeField(help_text="The time of the first attempt; null: there was only one.", null=True),
        ),
        migrations.AlterField(
            "deadletter", "at", models.DateTimeField(help_text="The time of the last attempt.")
        ),
    ]
