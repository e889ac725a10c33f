from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "lakewarden.audit"
    label = "audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # registers the periodic task with the worker
        from lakewarden.audit import periodic_tasks  # noqa: F401, PLC0415 apps must be loaded first
