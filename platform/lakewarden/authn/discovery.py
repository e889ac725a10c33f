"""Reads endpoints from a provider's discovery document (OpenID Connect Discovery 1.0)."""

from lakewarden.authn.json_fetch import FetchFailed, FetchJson
from lakewarden.authn.provider import OidcProvider


def discovered_address(provider: OidcProvider, name: str, *, fetch: FetchJson) -> str:
    """Fetch the document and return the endpoint `name` (sections 3 and 4.3; RFC 8414 section 2).

    Raises:
        FetchFailed: there is no document, it is of another issuer, or the endpoint is not in it.

    """
    document = fetch(provider.discovery_uri)
    issuer, address = document.get("issuer"), document.get(name)
    if not isinstance(issuer, str) or not provider.trusts(issuer):
        raise FetchFailed(
            f"{provider.discovery_uri} describes the issuer '{issuer}', not '{provider.issuer}': correct"
            " the provider's issuer, or name the other one as an additional issuer"
        )
    if not isinstance(address, str):
        raise FetchFailed(f"{provider.discovery_uri} names no '{name}'")
    return address
