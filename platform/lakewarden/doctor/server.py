"""Checks settings that are valid but may be dangerous: development mode, no authorization, the base address."""

import ipaddress
from collections.abc import Iterator
from urllib.parse import urlsplit

from lakewarden.config import Config
from lakewarden.doctor.findings import Finding, ok, warn


def examine(settings: Config) -> Iterator[Finding]:
    yield _mode(settings)
    yield _authorization(settings)
    if settings.server.base_uri is not None:
        yield _base_uri(settings.server.base_uri)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`; a name other than localhost counts as reachable from elsewhere."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _mode(settings: Config) -> Finding:
    host = settings.server.host
    if settings.mode == "production":
        return ok("mode", f"production, listening on {host}:{settings.server.port}")
    if is_loopback(host):
        return ok("mode", f"development, reachable from this machine only ({host})")
    return warn(
        "mode",
        f"development, but the server listens on {host}, where others can connect",
        fix="set LAKEWARDEN__MODE=production, or LAKEWARDEN__SERVER__HOST=127.0.0.1",
    )


def _authorization(settings: Config) -> Finding:
    if settings.authorization.is_off:
        return warn(
            "authorization",
            "is switched off (allow-all): every caller with a valid token may do everything",
            fix="unset LAKEWARDEN__AUTHORIZATION__BACKEND, or set it to database",
        )
    return ok("authorization", "is decided by " + ("OpenFGA" if settings.authorization.by_openfga else "the database"))


def _base_uri(address: str) -> Finding:
    parts = urlsplit(address)
    if parts.scheme in {"http", "https"} and parts.netloc and not (parts.query or parts.fragment):
        return ok("base address", f"clients are given the address {address}")
    return warn(
        "base address",
        f"{address!r} is not an address that clients can use",
        fix="set LAKEWARDEN__SERVER__BASE_URI to https://host[:port], or unset it",
    )
