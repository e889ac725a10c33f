"""Tasks that are not over are found without their history: those among them that have lost their job, each minute."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("lakewarden_tasks", "0002_tables")]
    operations = [
        migrations.AddIndex(
            model_name="task",
            index=models.Index(condition=models.Q(("outcome__isnull", True)), fields=["job_id"], name="task_open"),
        ),
    ]
