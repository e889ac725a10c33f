from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_storage_secret")]

    operations = [
        migrations.AddField(
            model_name="warehouse",
            name="storage_credential_type",
            field=models.TextField(db_default="", default="", help_text="Empty: there is none."),
        ),
    ]
