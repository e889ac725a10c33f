"""Runs the development issuer as a process of its own; called by the command line and by __main__.py."""

import ipaddress
import logging
import os
import secrets
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import uvicorn
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.handlers.asgi import ASGIHandler

from standalone.issuer import seed
from standalone.issuer.provider import Provider
from standalone.issuer.refusal import StartRefused
from standalone.issuer.site import Site
from standalone.issuer.state import StateDir

log = logging.getLogger(__name__)

MODE_SETTING: Final = "LAKEWARDEN__MODE"
TOKEN_LIFETIME_S: Final = 3600
_SESSION_S: Final = 8 * 3600


def run(
    port: int,
    state_dir: Path,
    host: str = "127.0.0.1",
    *,
    mode: str | None = None,
    token_lifetime_s: int = TOKEN_LIFETIME_S,
) -> None:
    """Serve until SIGTERM or SIGINT, in the main thread of a process that has not configured Django yet.

    `mode` is the server's mode, by default that of the environment; only `development` is accepted. Missing
    identities and keys are created in `state_dir`. Port 0 takes a free one and says which.

    Raises:
        StartRefused: not in development mode, not a loopback address, port taken, or state not usable.

    """
    _ensure_development(os.environ.get(MODE_SETTING) if mode is None else mode)
    _ensure_loopback(host)
    listener = _listen(host, port)
    with listener:
        issuer = f"http://{_in_url(host)}:{listener.getsockname()[1]}"
        seed.prepare(state_dir)
        application = _application(issuer, StateDir(state_dir), token_lifetime_s)
        log.warning(
            "The development OIDC issuer is at %s. For development only: it keeps passwords in plain files.",
            issuer,
        )
        config = uvicorn.Config(
            application,
            lifespan="off",
            access_log=False,  # its lines would contain codes and states
            log_level="warning",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=3,
        )
        # after finishing its requests, uvicorn raises these two signals again
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def _ensure_development(mode: str | None) -> None:
    if mode != "development":
        raise StartRefused(
            f"The development OIDC issuer does not start, because {MODE_SETTING} is "
            f"{'not set' if mode is None else repr(mode)}. Set {MODE_SETTING}=development to try Lakewarden"
            " out; for production configure your own OpenID provider."
        )


def _ensure_loopback(host: str) -> None:
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise StartRefused(f"The development OIDC issuer does not listen on '{host}': use 127.0.0.1.")


def _listen(host: str, port: int) -> socket.socket:
    """Bind the port before uvicorn does, for a clear error if it is taken, and to know the number for port 0."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise StartRefused(
            f"The development OIDC issuer cannot listen on {host}:{port} ({reason}): choose another port."
        ) from error
    return listener


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _application(issuer: str, state: StateDir, token_lifetime_s: int) -> ASGIHandler:
    """Build the Django application around one provider; without a database, so sessions are signed cookies.

    Cookie names are the issuer's own, since browsers share cookies between the ports of a host.
    """
    settings.configure(
        ALLOWED_HOSTS=["127.0.0.1", "localhost", "[::1]"],
        CSRF_COOKIE_NAME="lakewarden_dev_issuer_csrf",
        CSRF_FAILURE_VIEW="standalone.issuer.pages.expired_form",
        DATA_UPLOAD_MAX_MEMORY_SIZE=256 * 1024,
        LOGGING_CONFIG=None,
        MIDDLEWARE=[
            "django.middleware.security.SecurityMiddleware",
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.common.CommonMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.middleware.clickjacking.XFrameOptionsMiddleware",
        ],
        SECRET_KEY=secrets.token_urlsafe(48),
        SESSION_COOKIE_AGE=_SESSION_S,
        SESSION_COOKIE_NAME="lakewarden_dev_issuer_session",
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "DIRS": [Path(__file__).parent / "templates"],
            }
        ],
        USE_I18N=False,
        USE_TZ=True,
    )
    provider = Provider(issuer=issuer, state=state, token_lifetime_s=token_lifetime_s)
    settings.ROOT_URLCONF = Site(provider)
    return get_asgi_application()
