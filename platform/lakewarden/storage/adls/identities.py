"""The tokens of an identity in Microsoft Entra ID for Azure Storage."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from lakewarden.config import AzureConfig
from lakewarden.storage.adls.credentials import AzureSystemIdentity, ClientCredentials
from lakewarden.storage.bearer_tokens import BearerToken, BearerTokens, TokenService
from lakewarden.storage.interface import StorageError

_RESOURCE: Final = "https://storage.azure.com"
_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_MARGIN = timedelta(minutes=5)


def tokens_of(
    credential: ClientCredentials | AzureSystemIdentity, *, authority: str, settings: AzureConfig, timeout_s: float
) -> BearerTokens:
    """`authority` is an address such as https://login.microsoftonline.com."""
    entra = TokenService("Microsoft Entra ID", timeout_s=timeout_s)
    if isinstance(credential, ClientCredentials):
        fetch = _by_secret(entra, credential, authority)
    elif settings.federated_token_file:
        fetch = _by_service_account(entra, settings, authority)
    else:
        fetch = _by_machine(TokenService("The identity service of Azure", timeout_s=timeout_s), settings)
    return BearerTokens(fetch, margin=_MARGIN)


def _by_secret(entra: TokenService, credential: ClientCredentials, authority: str) -> Callable[[], BearerToken]:
    """Client credentials (RFC 6749, section 4.4)."""

    def fetch() -> BearerToken:
        form = {
            "grant_type": "client_credentials",
            "client_id": credential.client_id,
            "client_secret": credential.client_secret.get_secret_value(),
            "scope": f"{_RESOURCE}/.default",
        }
        return entra.ask("POST", f"{authority}/{credential.tenant_id}/oauth2/v2.0/token", form=form)

    return fetch


def _by_service_account(entra: TokenService, settings: AzureConfig, authority: str) -> Callable[[], BearerToken]:
    """The token of a service account in Kubernetes instead of a secret; it is replaced in its file every hour."""

    def fetch() -> BearerToken:
        file = settings.federated_token_file
        if not (file and settings.client_id and settings.tenant_id):
            raise StorageError("storage.azure: federated_token_file needs client_id and tenant_id")
        try:
            assertion = Path(file).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise StorageError(f"storage.azure.federated_token_file cannot be read: {type(error).__name__}") from None
        form = {
            "grant_type": "client_credentials",
            "client_id": settings.client_id,
            "client_assertion_type": _ASSERTION,
            "client_assertion": assertion,
            "scope": f"{_RESOURCE}/.default",
        }
        return entra.ask("POST", f"{authority}/{settings.tenant_id}/oauth2/v2.0/token", form=form)

    return fetch


def _by_machine(machine: TokenService, settings: AzureConfig) -> Callable[[], BearerToken]:
    """Managed identity."""
    query = {"api-version": "2018-02-01", "resource": f"{_RESOURCE}/"}
    if settings.client_id:
        query["client_id"] = settings.client_id
    address = f"{settings.identity_endpoint}?{urlencode(query)}"
    return lambda: machine.ask("GET", address, headers={"Metadata": "true"})
