from django.apps import AppConfig


class LedgerConfig(AppConfig):
    name = "lakewarden.authz.ledger"
    label = "authz"
    default_auto_field = "django.db.models.BigAutoField"
