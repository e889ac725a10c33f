"""Logs in to Vault, keeps the login alive, and says what is wrong if Vault does not do what it is asked."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, TypeVar

import hvac
import requests
import urllib3
from hvac.exceptions import (
    Forbidden,
    InvalidPath,
    InvalidRequest,
    Unauthorized,
    VaultDown,
    VaultError,
    VaultNotInitialized,
)
from requests.adapters import HTTPAdapter

from lakewarden.config import VaultConfig
from lakewarden.secrets.interface import SecretsUnavailable
from lakewarden.timed_connections import timed

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

PAUSE_S: Final = 2.0
"""After an answer that did not come, for which nothing is asked again."""
_LONGEST_REASON: Final = 200


class VaultSession:
    """For all threads of a process. It connects when it is used first."""

    def __init__(self, settings: VaultConfig) -> None:
        self._settings = settings
        verify = str(settings.ca_file) if settings.ca_file else True
        self._client = hvac.Client(
            url=settings.url, token="", namespace=settings.namespace, timeout=settings.timeout_s, verify=verify
        )
        for scheme in ("http://", "https://"):
            self._client.session.mount(scheme, _TimedAdapter())
        self._logging_in = Lock()
        self._renew_at = 0.0
        self._is_renewable = False
        self._silence = _Silence(settings.timeout_s)

    def call(self, action: Callable[[Any], Result]) -> Result:
        """The result of `action`, which is given the KV engine and may be called twice.

        Raises SecretsUnavailable; InvalidPath if Vault does not have what is asked for.
        """
        self._silence.check()
        try:
            result = self._authorized(action)
        except InvalidPath as error:
            self._silence.end()
            if error.errors:  # without any, the engine is there and the secret is not
                raise SecretsUnavailable(f"Vault has no KV engine {self._settings.mount!r}: {_said(error)}") from error
            raise
        except VaultError as error:
            self._silence.end()
            raise SecretsUnavailable(self._sentence(error)) from error
        except requests.RequestException as error:
            raise self._fell_silent(error) from error
        self._silence.end()
        return result

    def _fell_silent(self, error: requests.RequestException) -> SecretsUnavailable:
        reason = self._unreachable(error)
        self._silence.begin(reason)
        return SecretsUnavailable(reason)

    def _authorized(self, action: Callable[[Any], Result]) -> Result:
        self._keep_login()
        token = self._client.token
        try:
            return self._twice(action)
        except Forbidden:
            if self._is_valid():
                raise  # the token is good, and its policy does not allow this
        self._log_in(instead_of=token)
        return self._twice(action)

    def _twice(self, action: Callable[[Any], Result]) -> Result:
        """A connection that was kept open may have been closed by the server meanwhile."""
        try:
            return action(self._client.secrets.kv.v2)
        except requests.ConnectionError as error:
            if _is_late(error):
                raise
            return action(self._client.secrets.kv.v2)

    def _is_valid(self) -> bool:
        try:
            self._client.auth.token.lookup_self()
        except Forbidden:
            return False
        return True

    def _keep_login(self) -> None:
        if self._client.token and time.monotonic() < self._renew_at:
            return
        token = self._client.token
        if token and self._is_renewable:
            with self._logging_in_alone():
                if token != self._client.token or time.monotonic() < self._renew_at:
                    return
                try:
                    self._note(self._client.auth.token.renew_self()["auth"])
                except VaultDown:
                    raise
                except VaultError as error:  # of another kind in each version
                    logger.info("Vault does not renew the login, a new one is made: %s", _said(error))
                else:
                    if time.monotonic() < self._renew_at:
                        return
        self._log_in(instead_of=token)

    @contextmanager
    def _logging_in_alone(self) -> Iterator[None]:
        """Whoever waited for another's login that was not answered does not try the same: they would wait in turn."""
        waits_since = time.monotonic()
        with self._logging_in:
            self._silence.check(begun_after=waits_since)
            try:
                yield
            except requests.RequestException as error:
                raise self._fell_silent(error) from error

    def _log_in(self, *, instead_of: str) -> None:
        with self._logging_in_alone():
            if self._client.token != instead_of:
                return  # another thread was faster
            try:
                answer = self._new_login()
            except (InvalidRequest, Unauthorized, Forbidden) as error:
                raise SecretsUnavailable(
                    f"Vault refuses the login by {self._settings.auth} (settings secrets.vault.*): {_said(error)}"
                ) from error
            except OSError as error:
                if isinstance(error, requests.RequestException):
                    raise
                raise SecretsUnavailable(f"The file for the login to Vault cannot be read: {error.strerror}") from error
            self._note(answer)

    def _new_login(self) -> dict[str, Any]:
        """What Vault says of the new token."""
        settings, auth = self._settings, self._client.auth
        mount = settings.auth_mount or settings.auth
        if settings.auth == "approle":
            secret_id = settings.secret_id.get_secret_value() if settings.secret_id else None
            answer = auth.approle.login(settings.role_id, secret_id, use_token=False, mount_point=mount)
        elif settings.auth == "kubernetes":
            jwt = settings.jwt_file.read_text(encoding="utf-8").strip()
            answer = auth.kubernetes.login(settings.role, jwt, use_token=False, mount_point=mount)
        elif settings.auth == "userpass":
            assert settings.password is not None  # noqa: S101 the configuration has it
            password = settings.password.get_secret_value()
            answer = auth.userpass.login(settings.username, password, use_token=False, mount_point=mount)
        else:
            return self._given_token()
        return dict(answer["auth"])

    def _given_token(self) -> dict[str, Any]:
        settings = self._settings
        if settings.token_file is not None:
            token = settings.token_file.read_text(encoding="utf-8").strip()
        else:
            assert settings.token is not None  # noqa: S101 the configuration has it
            token = settings.token.get_secret_value()
        before, self._client.token = self._client.token, token
        try:
            known = self._client.auth.token.lookup_self()["data"]
        except BaseException:
            self._client.token = before
            raise
        return {"client_token": token, "lease_duration": known["ttl"], "renewable": known.get("renewable", False)}

    def _note(self, answer: dict[str, Any]) -> None:
        lifetime_s = answer["lease_duration"] or float("inf")  # 0: it does not end
        self._is_renewable = bool(answer["renewable"])
        self._renew_at = time.monotonic() + lifetime_s / 2
        self._client.token = answer["client_token"]

    def _sentence(self, error: VaultError) -> str:
        settings = self._settings
        if isinstance(error, VaultDown):
            return f"Vault is sealed or not ready: {_said(error)}"
        if isinstance(error, VaultNotInitialized):
            return "Vault is not initialized"
        if isinstance(error, Forbidden):
            return (
                f"Vault denies access: the policy of the login by {settings.auth} must allow create, read, delete and "
                f"list below {settings.mount}/data/{settings.path} and {settings.mount}/metadata/{settings.path}"
            )
        return f"Vault fails: {_said(error)}"

    def _unreachable(self, error: requests.RequestException) -> str:
        if _is_late(error):
            return f"Vault does not answer within {self._settings.timeout_s:g} seconds"
        if isinstance(error, requests.exceptions.SSLError):
            return "Vault's certificate is not trusted: set secrets.vault.ca_file"
        return f"Vault cannot be reached at {self._settings.url}"


class _TimedAdapter(HTTPAdapter):
    """Each answer must arrive as a whole within the time-out."""

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 as its base has it
        super().init_poolmanager(*arguments, **options)
        timed(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:  # noqa: ANN401
        return timed(super().proxy_manager_for(proxy, **options))


def _is_late(error: requests.RequestException) -> bool:
    """In the middle of a body, requests calls a time-out the end of the connection."""
    reason = error.args[0] if error.args else None
    return isinstance(error, requests.Timeout) or isinstance(reason, urllib3.exceptions.ReadTimeoutError)


class _Silence:
    """While Vault does not answer, one caller at a time finds out whether it does again, and the others do not wait."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._lock = Lock()
        self._reason: str | None = None
        self._asked_at = self._begun_at = 0.0

    def check(self, *, begun_after: float | None = None) -> None:
        """Raises SecretsUnavailable; with `begun_after` only if the silence has begun since then."""
        with self._lock:
            if self._reason is None:
                return
            if begun_after is not None:
                if self._begun_at > begun_after:
                    raise SecretsUnavailable(self._reason)
                return
            now = time.monotonic()
            if now < self._asked_at:
                raise SecretsUnavailable(self._reason)
            self._asked_at = now + 2 * self._timeout_s + PAUSE_S

    def begin(self, reason: str) -> None:
        with self._lock:
            self._begun_at = time.monotonic()
            self._reason, self._asked_at = reason, self._begun_at + PAUSE_S

    def end(self) -> None:
        self._reason = None


def _said(error: VaultError) -> str:
    """What Vault said, without the address of the request."""
    return str(error.args[0] if error.args else type(error).__name__).strip()[:_LONGEST_REASON]
