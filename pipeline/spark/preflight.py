"""Requests a token and the catalog's config before a JVM is started, so a wrong secret is reported quickly."""

import json
import re
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import urllib3

from lakewarden.errors import Forbidden, LakewardenError, NotAuthorized, NotFound, Unavailable
from pipeline.spark.catalogs import RestCatalog

TIMEOUT_S = 10.0
_BY_STATUS: dict[int, type[LakewardenError]] = {401: NotAuthorized, 403: Forbidden, 404: NotFound}


def check(catalog: RestCatalog) -> None:
    """Returns when an engine could start on this catalog (REST spec: `oauth/tokens` and `/v1/config`).

    Raises `NotAuthorized`, `Forbidden`, `NotFound` (no such warehouse) or `Unavailable`, with one sentence.
    """
    with urllib3.PoolManager(timeout=TIMEOUT_S, retries=False) as http:
        token = _token(http, catalog)
        query = urlencode({"warehouse": catalog.warehouse})
        status, body = _ask(
            http, "GET", f"{catalog.uri.rstrip('/')}/v1/config?{query}", {"Authorization": f"Bearer {token}"}
        )
    if status != HTTPStatus.OK:
        raise config_refused(catalog, status, body)


def _token(http: urllib3.PoolManager, catalog: RestCatalog) -> str:
    client_id, _, secret = catalog.credential.partition(":")
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    content = urlencode({**form, "scope": catalog.scope})
    header = {"Content-Type": "application/x-www-form-urlencoded"}
    status, body = _ask(http, "POST", catalog.oauth2_server_uri, header, content)
    if status != HTTPStatus.OK or not isinstance(body.get("access_token"), str):
        raise token_refused(catalog, status, body)
    return str(body["access_token"])


def _ask(
    http: urllib3.PoolManager, method: str, address: str, headers: dict[str, str], content: str | None = None
) -> tuple[int, dict[str, Any]]:
    """Status and JSON object of the answer; an answer that is not one counts as empty."""
    try:
        answer = http.request(method, address, headers=headers, body=content, redirect=False)
        body = json.loads(answer.data)
    except urllib3.exceptions.HTTPError as error:
        raise Unavailable(f"Nothing answers at {address}: {_reason(error)}. Is the server running?") from error
    except ValueError:
        body = {}
    return answer.status, body if isinstance(body, dict) else {}


def _reason(error: Exception) -> str:
    said = str(error.args[-1] if error.args else error).rpartition(": ")[2].rstrip(".")
    return re.sub(r"^\[Errno -?\d+\] ", "", said)


def token_refused(catalog: RestCatalog, status: int, body: dict[str, Any]) -> LakewardenError:
    """The sentence for a token endpoint that gave no token (RFC 6749, section 5.2)."""
    client_id = catalog.credential.partition(":")[0]
    said = str(body.get("error_description") or body.get("error") or "no reason given").rstrip(".")
    if status in {400, 401, 403}:
        return NotAuthorized(
            f"{status}: the token endpoint {catalog.oauth2_server_uri} refused client {client_id} "
            f"with scope {catalog.scope}: {said}. Check the client's secret and scope."
        )
    return Unavailable(f"The token endpoint {catalog.oauth2_server_uri} answered {status}: {said}.")


def config_refused(catalog: RestCatalog, status: int, body: dict[str, Any]) -> LakewardenError:
    """The sentence for a catalog that would not give its config (REST spec, `ErrorModel`)."""
    error = body.get("error")
    said = error.get("message") if isinstance(error, dict) else None
    message = f"{status}: the catalog {catalog.uri} did not open warehouse {catalog.warehouse!r}: "
    return _BY_STATUS.get(status, Unavailable)(message + (said or "no reason given").rstrip(".") + ".")
