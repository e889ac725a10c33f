"""Up to where batches came through a fallback file, so that a flush can say so."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('ingest', '0003_maintenance_runs')]

    operations = [
        migrations.AddField(
            model_name='ingestloghead',
            name='fallback_position',
            field=models.BigIntegerField(db_default=0, default=0, help_text='The last one that came through a fallback file.'),
        ),
    ]
