"""Django's settings, derived from the configuration (lakewarden.config)."""

import secrets
from importlib.resources import files
from typing import Any

from lakewarden import __version__, config
from lakewarden.postgres.opening import parameters


def _database(settings: config.DatabaseConfig) -> dict[str, Any]:
    if settings.url is None:
        return {"ENGINE": "django.db.backends.dummy"}
    wanted = parameters(settings)
    return {
        "ENGINE": "lakewarden.postgres",
        "NAME": wanted.pop("dbname", ""),
        "USER": wanted.pop("user", ""),
        "PASSWORD": wanted.pop("password", ""),
        # several servers, separated by commas, as libpq reads them
        "HOST": wanted.pop("host", ""),
        "PORT": wanted.pop("port", ""),
        # each thread keeps its connection until it fails, see lakewarden.database
        "CONN_MAX_AGE": None,
        "OPTIONS": {"prepare_threshold": 1, **wanted},
    }


_config = config.current()

DEBUG = False
# required by Django, but nothing is signed with it, so it need not survive a restart
SECRET_KEY = secrets.token_hex(32)
ALLOWED_HOSTS = ["*"]  # the API answers under any host name
ROOT_URLCONF = "lakewarden.urls"
APPEND_SLASH = False
DATA_UPLOAD_MAX_MEMORY_SIZE = None  # asgi.py limits every body
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
DATABASES = {"default": _database(_config.database)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "lakewarden.authz.ledger",
    "lakewarden.audit",
    "lakewarden.events",
    "lakewarden.idempotency",
    "lakewarden.secrets",
    "lakewarden.tasks",
    "lakewarden.usage",
    "tenants",
    "catalog",
    "ingest",
    "management",
    "console",
    "rest_framework",
    "procrastinate.contrib.django",
]
MIDDLEWARE = ["lakewarden.http.call_recording.observed"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [],
        "APP_DIRS": False,
        "OPTIONS": {"loaders": ["django.template.loaders.app_directories.Loader"]},
    }
]
# the console's own folder, which WhiteNoise serves there: nothing is collected
STATIC_URL = "/console/static/"
STATIC_ROOT = str(files("console") / "static")
WHITENOISE_ALLOW_ALL_ORIGINS = False
# of the console's forms, the only ones
CSRF_COOKIE_NAME = "lakewarden-csrf"
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Strict"
CSRF_FAILURE_VIEW = "console.visits.csrf_failed"
CSRF_TRUSTED_ORIGINS = [origin] if (origin := "/".join((_config.server.base_uri or "").split("/", 3)[:3])) else []
PROCRASTINATE_AUTODISCOVER_MODULE_NAME = None
# the modules whose tasks a worker can run
PROCRASTINATE_IMPORT_PATHS = [
    "lakewarden.tasks.cleanup",
    "lakewarden.tasks.purge",
    "lakewarden.tasks.stalled",
    "catalog.services.deletion.expire",
    "catalog.services.periodic_tasks",
    "ingest.services.periodic_tasks",
]
if _config.authorization.by_openfga:
    PROCRASTINATE_IMPORT_PATHS.append("lakewarden.tasks.authorization_changes")
# where traces find the functions that look up and authorize, and the one that stores change data (lakewarden.tracing)
TRACED_ACCESS = ["tenants.access", "catalog.access", "catalog.hot_access", "catalog.signing_access"]
TRACED_APPENDS = "ingest.services.storing.store"
# the modules that say what workers must do and have done, for Prometheus (lakewarden.serving.metrics)
METRICS_MODULES = ["lakewarden.events.metrics", "lakewarden.tasks.metrics", "ingest.services.backlog_metrics"]
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
    "DEFAULT_SCHEMA_CLASS": "management.openapi_schema.ManagementSchema",
}
SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Lakewarden management API",
    "DESCRIPTION": "Projects, warehouses, users, roles and rights of a Lakewarden server. Each path is served without "
    "`/v1` too (`/management/whoami`), for clients that use the short form; both behave the same. "
    "The header `x-project-id` names the project of a request; without it, it is the default project. "
    "The response repeats the request's `x-request-id`.",
    "VERSION": __version__,
    "OAS_VERSION": "3.1.1",
    "SCHEMA_PATH_PREFIX": "/management/v1",
    "POSTPROCESSING_HOOKS": ["management.openapi_schema.complete"],
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
        "json": {"()": "lakewarden.json_log.JsonFormatter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": _config.log.format}},
    "root": {"handlers": ["console"], "level": _config.log.level},
    "loggers": {
        "django": {"handlers": [], "level": "WARNING", "propagate": True},
        # `http.errors` logs failed requests, once
        "django.request": {"handlers": [], "level": "CRITICAL", "propagate": False},
        "django.server": {"handlers": [], "propagate": True},
        "procrastinate": {"level": "WARNING"},
        # below these levels AWS's library logs signatures, and the answers of token services with their keys
        "botocore": {"level": "WARNING"},
        "botocore.credentials": {"level": "CRITICAL"},
        # below this level it logs addresses with the signatures that they carry
        "urllib3": {"level": "WARNING"},
    },
}
