from django.apps import AppConfig


class TasksConfig(AppConfig):
    name = "lakewarden.tasks"
    label = "lakewarden_tasks"
    default_auto_field = "django.db.models.BigAutoField"
