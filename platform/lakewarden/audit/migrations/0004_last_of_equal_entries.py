from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("audit", "0003_partitions_by_day")]
    operations = [migrations.AddField("auditentry", "last_at", models.DateTimeField(null=True))]
