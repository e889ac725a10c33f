from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "lakewarden.events"
    label = "events"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # makes its periodic task known to the worker and its scheduler
        from lakewarden.events import periodic_tasks  # noqa: F401, PLC0415 apps must be loaded first
