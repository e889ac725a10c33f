from django.apps import AppConfig


class UsageConfig(AppConfig):
    name = "lakewarden.usage"
    label = "usage"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # makes its periodic task known to the worker and its scheduler
        from lakewarden.usage import periodic_tasks  # noqa: F401, PLC0415 apps must be loaded first
