from django.apps import AppConfig


class UsageConfig(AppConfig):
    name = "lakewarden.usage"
    label = "usage"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # makes the task of its upkeep known to the worker and its scheduler
        from lakewarden.usage import upkeep  # noqa: F401, PLC0415 apps must be loaded first
