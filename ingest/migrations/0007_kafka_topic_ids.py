"""Floors belong to a topic's id: one that was made anew under the same name begins at offset 0 again."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('ingest', '0006_kafka_contents')]

    operations = [
        migrations.AddField(
            model_name='ingestkafkafloor',
            name='topic_id',
            field=models.TextField(db_default='', default='', help_text="Kafka's own; empty: of a release before."),
        ),
    ]
