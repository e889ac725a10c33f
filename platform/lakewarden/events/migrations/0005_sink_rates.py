from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("events", "0004_dead_letter_attempts")]
    operations = [
        migrations.AddField(
            "eventsink",
            "sent",
            models.BigIntegerField(db_default=0, default=0, help_text="How many events were sent, in all."),
        ),
        migrations.AddField(
            "eventsink",
            "recently_sent",
            models.BigIntegerField(db_default=0, default=0, help_text="How many since `recent_since`."),
        ),
        migrations.AddField(
            "eventsink",
            "recent_since",
            models.DateTimeField(help_text="At most about a minute ago while events are sent.", null=True),
        ),
    ]
