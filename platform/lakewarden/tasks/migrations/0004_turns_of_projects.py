"""How many tasks of a project wait in a queue is counted quickly: the more, the later a further one comes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("lakewarden_tasks", "0003_open_tasks")]
    operations = [
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("outcome__isnull", True)),
                fields=["project_id", "queue_name", "scheduled_for"],
                name="task_turn",
            ),
        ),
    ]
