from django.apps import AppConfig


class DatabaseAuthorizationConfig(AppConfig):
    name = "lakewarden.authz.database"
    label = "authz"
    default_auto_field = "django.db.models.BigAutoField"
