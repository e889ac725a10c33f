"""The content is compressed already: Postgres must not try again."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("catalog", "0001_initial")]
    operations = [
        migrations.RunSQL(
            "alter table tabular_document alter column content set storage external",
            "alter table tabular_document alter column content set storage extended",
        )
    ]
