from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalog", "0011_generic_tables")]

    operations = [
        # the database's default, for releases before that do not write it
        migrations.AddField("warehousestatistics", "number_of_generic_tables", models.BigIntegerField(db_default=0)),
    ]
