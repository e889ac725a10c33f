from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "lakewarden.events"
    label = "events"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # registers the periodic task with the worker
        from lakewarden.events import periodic_tasks  # noqa: F401, PLC0415 apps must be loaded first
