from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("events", "0001_initial")]
    operations = [
        migrations.CreateModel(
            name="EventSink",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                (
                    "delivered",
                    models.BigIntegerField(
                        default=0, help_text="The sequence up to which all events were delivered."
                    ),
                ),
            ],
            options={"db_table": "event_sink"},
        ),
    ]
