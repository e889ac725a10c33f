from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "lakewarden.audit"
    label = "audit"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # makes its periodic task known to the worker and its scheduler
        from lakewarden.audit import periodic_tasks  # noqa: F401, PLC0415 apps must be loaded first
