from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("usage", "0001_endpoint_calls")]
    operations = [
        migrations.CreateModel(
            name="Spending",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("budget", models.TextField()),
                ("spender", models.TextField()),
                ("period", models.DateTimeField()),
                ("asked", models.BigIntegerField(help_text="All that was asked for, refused or not.")),
                ("refused", models.BigIntegerField(default=0, help_text="How often it was too much.")),
            ],
            options={"db_table": "spending"},
        ),
        migrations.AddConstraint(
            "spending", models.UniqueConstraint(fields=["period", "budget", "spender"], name="spending_unique")
        ),
        migrations.AddIndex("endpointcalls", models.Index(fields=["hour"], name="endpoint_calls_hour")),
    ]
