"""References to contents in Kafka, and from where on its records are kept."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('ingest', '0005_request_counts')]

    operations = [
        migrations.CreateModel(
            name='IngestKafkaFloor',
            fields=[
                ('pk', models.CompositePrimaryKey('topic', 'partition', blank=True, editable=False, primary_key=True, serialize=False)),
                ('topic', models.TextField()),
                ('partition', models.IntegerField()),
                ('lowest', models.BigIntegerField()),
            ],
            options={
                'db_table': 'ingest_kafka_floor',
            },
        ),
        migrations.AlterField(
            model_name='ingestbatch',
            name='encoding',
            field=models.SmallIntegerField(default=0, help_text='0: plain, 1: gzip; 2 and 3: the same, in Kafka.'),
        ),
    ]
