from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0008_reachable_locations")]

    operations = [
        migrations.AddField(
            model_name="warehouse",
            name="contracts",
            field=models.BigIntegerField(
                db_default=0,
                default=0,
                help_text="The version of all data contracts in it; 0: there has never been one.",
            ),
        ),
    ]
