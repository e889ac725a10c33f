"""Checks the identity providers: OIDC providers, their introspection, and the Kubernetes cluster."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import urllib3

from lakewarden.authn import provider_settings
from lakewarden.authn.introspection import IntrospectionEndpoint
from lakewarden.authn.json_fetch import FetchFailed, fetch_json, post_json, reason_of
from lakewarden.authn.kubernetes_api import Cluster
from lakewarden.authn.provider import Introspection, OidcProvider
from lakewarden.authn.provider_keys import usable_keys
from lakewarden.config import Config, KubernetesConfig, OidcConfig
from lakewarden.doctor.findings import Finding, fail, ok, warn

_TIMEOUT = urllib3.Timeout(connect=3.0, read=5.0)
_MAX_BYTES = 1024 * 1024
_OK = 200
_NOT_LET_IN = (401, 403)


@dataclass(frozen=True, slots=True)
class _Document:
    content: dict[str, Any]
    clock_ahead_s: float | None


class _Unreadable(Exception):
    """An address did not return a JSON object; the message says why."""


def examine(settings: Config) -> Iterator[Finding]:
    if not settings.openid and not settings.kubernetes.enabled:
        yield fail(
            "identity",
            "no identity provider is configured, so no user can log in",
            fix="set LAKEWARDEN__OPENID__OIDC__ISSUER (and …__AUDIENCE) to your OIDC provider's",
        )
    for identifier, provider in sorted(settings.openid.items()):
        yield from _provider(identifier, provider)
    if settings.kubernetes.enabled:
        yield from _cluster(settings.kubernetes)


def _provider(identifier: str, settings: OidcConfig) -> Iterator[Finding]:
    name = f"identity provider {identifier}"
    setting = f"LAKEWARDEN__OPENID__{identifier.upper()}"
    try:
        provider = provider_settings.provider(identifier, settings)
    except ValueError as error:
        yield fail(name, str(error), fix=f"correct {setting}__*")
        return
    try:
        yield from _reached(name, setting, provider)
    except _Unreadable as error:
        yield fail(
            name, str(error), fix=f"see that the provider runs and that {setting}__ISSUER ({settings.issuer}) is right"
        )
        return
    if provider.introspection is not None:
        yield _introspection(f"{name}, introspection", f"{setting}__INTROSPECTION", provider, provider.introspection)


def _reached(name: str, setting: str, provider: OidcProvider) -> Iterator[Finding]:
    discovery = _fetch(provider.jwks_uri or provider.discovery_uri)
    issuer, jwks_uri = discovery.content.get("issuer"), discovery.content.get("jwks_uri")
    if provider.jwks_uri is not None:
        issuer, jwks_uri = provider.issuer, provider.jwks_uri  # discovery is not needed then, and may not exist
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
    yield from _clock(f"{name}, clock", discovery.clock_ahead_s, provider.clock_skew_s)


def _introspection(name: str, setting: str, provider: OidcProvider, settings: Introspection) -> Finding:
    endpoint = IntrospectionEndpoint(provider, settings, fetch=fetch_json, post=post_json)
    try:
        answer = endpoint.ask("asked-by-lakewarden-doctor")
    except FetchFailed as error:
        if error.status in _NOT_LET_IN:
            return fail(
                name,
                f"{error}: this server's client may not introspect tokens",
                fix=f"compare {setting}__CLIENT_ID and {setting}__CLIENT_SECRET with the provider's client",
            )
        return fail(name, str(error), fix=f"see that the provider offers introspection, or correct {setting}__URI")
    if answer is not None:
        return fail(
            name,
            "accepts an invented token as active, so anybody could get access",
            fix=f"see that {setting}__URI is the provider's introspection endpoint",
        )
    return ok(name, f"{endpoint.address()} accepts this server's client")


def _cluster(settings: KubernetesConfig) -> Iterator[Finding]:
    name, setting = "kubernetes", "LAKEWARDEN__KUBERNETES"
    cluster = Cluster(settings)
    try:
        own = cluster.own_token()
    except FetchFailed as error:
        yield fail(name, str(error), fix=f"mount a service account token, and set {setting}__TOKEN_FILE to its file")
        return
    if settings.api_server.startswith("https:") and not settings.ca_file.is_file():
        yield fail(
            name,
            f"the file {settings.ca_file} with the API server's certificates does not exist",
            fix=f"set {setting}__CA_FILE to a PEM file with them",
        )
        return
    try:
        yield ok(name, _vouching(cluster, settings, own))
    except FetchFailed as error:
        yield fail(name, str(error), fix=_cluster_fix(setting, settings, error.status))
        return
    if not settings.audience:
        yield warn(
            f"{name}, audience",
            "tokens that pods got for the API server are accepted too",
            fix=f"set {setting}__AUDIENCE, and give callers projected tokens for it",
        )


def _vouching(cluster: Cluster, settings: KubernetesConfig, own: str) -> str:
    """How the cluster verifies service accounts, as a sentence; raises FetchFailed if it cannot."""
    if settings.method == "token-review":
        cluster.review(own)
        return f"{settings.api_server} is reachable and reviews tokens for this server"
    issuer = cluster.issuer()
    listed = cluster.fetch(cluster.keys_address).get("keys")
    usable = usable_keys([key for key in listed if isinstance(key, dict)] if isinstance(listed, list) else [])
    if not usable:
        raise FetchFailed(f"{cluster.keys_address} holds no key that tokens can be verified with")
    return f"{settings.api_server} is reachable, issuer {issuer}, usable signing keys: {len(usable)}"


def _cluster_fix(setting: str, settings: KubernetesConfig, status: int | None) -> str:
    role = "auth-delegator" if settings.method == "token-review" else "service-account-issuer-discovery"
    fixes = {
        401: f"see that the token in {setting}__TOKEN_FILE is one for this cluster's API server",
        403: f"bind the ClusterRole system:{role} to this server's service account",
    }
    return fixes.get(status or 0, f"see that {setting}__API_SERVER and {setting}__CA_FILE are the cluster's")


def _clock(name: str, ahead_s: float | None, tolerated_s: float) -> Iterator[Finding]:
    if ahead_s is not None and abs(ahead_s) > tolerated_s:
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
        raise _Unreadable(f"{address} cannot be reached: {reason_of(error)}") from error
    except (ValueError, RecursionError) as error:
        raise _Unreadable(f"{address} does not answer with JSON") from error
    if not isinstance(content, dict):
        raise _Unreadable(
            f"{address} answers with status {status}" if status != _OK else f"{address} is not a JSON object"
        )
    return _Document(content, _ahead(date))


def _ahead(date: str | None) -> float | None:
    """How far the sender's clock is ahead, in seconds; None if the answer has no valid date."""
    if date is None:
        return None
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return None
