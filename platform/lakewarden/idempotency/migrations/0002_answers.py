from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("idempotency", "0001_initial")]
    operations = [
        migrations.AddField(
            "idempotencyrecord",
            "answer_status",
            models.SmallIntegerField(null=True, help_text="Of an answer that cannot be made from the state."),
        ),
        migrations.AddField("idempotencyrecord", "answer_body", models.TextField(db_default="", default="")),
    ]
