from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "lakewarden.events"
    label = "events"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # makes the task of its upkeep known to the worker and its scheduler
        from lakewarden.events import upkeep  # noqa: F401, PLC0415 apps must be loaded first
