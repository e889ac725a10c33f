"""What left the catalog with its files remembers who owned it: it is theirs again when somebody registers it."""

from django.db import migrations

_ADD = "alter table reserved_location add column owners text[] not null default '{}'"
_DROP = "alter table reserved_location drop column owners"


class Migration(migrations.Migration):
    dependencies = [("catalog", "0009_reserved_locations")]
    operations = [migrations.RunSQL(_ADD, _DROP)]
