"""The limits in time of every client of obstore, from the operator's settings."""

from datetime import timedelta
from typing import TYPE_CHECKING

from lakewarden.config import StorageConfig

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig


def client_options(settings: StorageConfig, *, url: str) -> "ClientConfig":
    return {
        "allow_http": url.startswith("http:"),
        "connect_timeout": timedelta(seconds=settings.connect_timeout_s),
        "timeout": timedelta(seconds=settings.request_timeout_s),
    }


def retry_options(settings: StorageConfig, *, retries: int) -> "RetryConfig":
    pause = timedelta(seconds=settings.retry_pause_s)
    return {
        "max_retries": retries,
        "retry_timeout": timedelta(seconds=settings.retry_within_s),
        "backoff": {"init_backoff": pause, "max_backoff": timedelta(seconds=settings.request_timeout_s), "base": 2},
    }
