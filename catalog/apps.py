from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "catalog"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from catalog.services.deletion import expire  # noqa: PLC0415 models cannot be imported earlier
        from catalog.services.deletion import purge as rule  # noqa: PLC0415
        from lakewarden.tasks import purge  # noqa: PLC0415

        purge.obey(rule)
        expire.undo_when_cancelled()
