"""Every OIDC provider: reachable, the issuer that is configured, with keys, and with the same idea of the time."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import urllib3

from lakewarden.authn.claims import CLOCK_SKEW_S
from lakewarden.authn.provider import OidcProvider
from lakewarden.authn.provider_keys import usable_keys
from lakewarden.config import Config, OidcConfig
from lakewarden.doctor.findings import Finding, fail, ok, warn

_TIMEOUT = urllib3.Timeout(connect=3.0, read=5.0)
_MAX_BYTES = 1024 * 1024
_OK = 200


@dataclass(frozen=True, slots=True)
class _Document:
    content: dict[str, Any]
    clock_ahead_s: float | None


class _Unreadable(Exception):
    """An address did not give a JSON object; the message says why."""


def examine(settings: Config) -> Iterator[Finding]:
    if not settings.openid:
        yield fail(
            "identity",
            "no identity provider is configured, so nobody can log in",
            fix="set LAKEWARDEN__OPENID__OIDC__ISSUER (and …__AUDIENCE) to your OIDC provider's",
        )
    for identifier, provider in sorted(settings.openid.items()):
        yield from _provider(identifier, provider)


def _provider(identifier: str, settings: OidcConfig) -> Iterator[Finding]:
    name = f"identity provider {identifier}"
    setting = f"LAKEWARDEN__OPENID__{identifier.upper()}"
    try:
        provider = OidcProvider(
            id=identifier,
            issuer=settings.issuer,
            audiences=settings.audience,
            additional_issuers=settings.additional_issuers,
            scope=settings.scope,
            subject_claims=settings.subject_claim,
        )
    except ValueError as error:
        yield fail(name, str(error), fix=f"correct {setting}__*")
        return
    try:
        yield from _reached(name, setting, provider)
    except _Unreadable as error:
        yield fail(
            name, str(error), fix=f"see that the provider runs and that {setting}__ISSUER ({settings.issuer}) is right"
        )


def _reached(name: str, setting: str, provider: OidcProvider) -> Iterator[Finding]:
    discovery = _fetch(provider.discovery_uri)
    issuer, jwks_uri = discovery.content.get("issuer"), discovery.content.get("jwks_uri")
    if not isinstance(issuer, str) or not provider.trusts(issuer):
        yield fail(
            name,
            f"calls itself {issuer!r}, but {provider.issuer!r} is configured",
            fix=f"set {setting}__ISSUER to the former, or add it to {setting}__ADDITIONAL_ISSUERS",
        )
        return
    if not isinstance(jwks_uri, str):
        raise _Unreadable(f"{provider.discovery_uri} names no jwks_uri")
    keys = _fetch(jwks_uri).content.get("keys")
    usable = usable_keys([key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else [])
    if not usable:
        raise _Unreadable(f"{jwks_uri} holds no key that tokens can be verified with")
    yield ok(name, f"{issuer} is reachable, usable signing keys: {len(usable)}")
    if not provider.audiences:
        yield warn(
            f"{name}, audience",
            "tokens that were made for other services are accepted too",
            fix=f"set {setting}__AUDIENCE to the audience of this server's tokens",
        )
    yield from _clock(f"{name}, clock", discovery.clock_ahead_s)


def _clock(name: str, ahead_s: float | None) -> Iterator[Finding]:
    if ahead_s is not None and abs(ahead_s) > CLOCK_SKEW_S:
        direction = "ahead of" if ahead_s > 0 else "behind"
        yield warn(
            name,
            f"is {abs(ahead_s):.0f} seconds {direction} this machine's: fresh tokens may be refused",
            fix="let both machines follow a time server (NTP)",
        )


def _fetch(address: str) -> _Document:
    try:
        with urllib3.request(
            "GET", address, timeout=_TIMEOUT, retries=urllib3.Retry(2, connect=0, read=0), preload_content=False
        ) as response:
            status, date = response.status, response.headers.get("date")
            content = json.loads(response.read(_MAX_BYTES)) if status == _OK else None
    except urllib3.exceptions.HTTPError as error:
        raise _Unreadable(f"{address} cannot be reached: {_reason(error)}") from error
    except (ValueError, RecursionError) as error:
        raise _Unreadable(f"{address} does not answer with JSON") from error
    if not isinstance(content, dict):
        raise _Unreadable(
            f"{address} answers with status {status}" if status != _OK else f"{address} is no JSON object"
        )
    return _Document(content, _ahead(date))


def _reason(error: Exception) -> str:
    """The innermost cause, without urllib3's object addresses."""
    cause: object = error
    while isinstance(cause, urllib3.exceptions.MaxRetryError) and cause.reason is not None:
        cause = cause.reason
    return str(cause).rpartition(": ")[2] or type(cause).__name__


def _ahead(date: str | None) -> float | None:
    """How far the sender's clock is ahead, in seconds; None when it does not tell."""
    if date is None:
        return None
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return None
