import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Secret",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("key_id", models.TextField()),
                ("nonce", models.BinaryField()),
                ("ciphertext", models.BinaryField()),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "db_table": "secret",
                "indexes": [models.Index(fields=["key_id", "id"], name="secret_key")],
            },
        ),
    ]
