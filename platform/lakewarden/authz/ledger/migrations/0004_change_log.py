from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('authz', '0003_grant_ancestors'),
    ]

    operations = [
        migrations.CreateModel(
            name='Change',
            fields=[
                ('sequence', models.BigAutoField(primary_key=True, serialize=False)),
                ('operation', models.TextField(choices=[('write', 'write'), ('delete', 'delete')])),
                ('principal_id', models.TextField()),
                ('relation', models.TextField()),
                ('object_type', models.TextField()),
                ('object_id', models.TextField()),
            ],
            options={
                'db_table': 'authz_change',
                'constraints': [models.CheckConstraint(condition=models.Q(('operation__in', ['write', 'delete'])), name='authz_change_operation_known')],
            },
        ),
    ]
