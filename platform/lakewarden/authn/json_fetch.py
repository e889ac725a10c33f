"""Fetches a provider's public JSON documents over HTTP with limits on time and size; for provider_keys.py."""

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

import urllib3

JsonObject = dict[str, Any]
FetchJson = Callable[[str], JsonObject]

_MAX_BYTES: Final = 1024 * 1024
_TIMEOUT: Final = urllib3.Timeout(total=5.0, connect=2.0, read=3.0)
_RETRIES: Final = urllib3.Retry(total=2, connect=0, read=0, redirect=2, status=0, other=0)

_pool = urllib3.PoolManager(num_pools=8, maxsize=2)


class FetchFailed(Exception):
    """The document could not be had; the message says why, for the log."""


def fetch_json(url: str) -> JsonObject:
    """GET one JSON object of at most 1 MiB; gives up after about five seconds.

    Raises:
        FetchFailed: not reachable, not 200, too large, or not a JSON object.

    """
    if not url.startswith(("https://", "http://")):
        raise FetchFailed(f"'{url}' is not an http or https address")
    try:
        with _pool.request(
            "GET",
            url,
            headers={"Accept": "application/json"},
            timeout=_TIMEOUT,
            retries=_RETRIES,
            preload_content=False,
        ) as response:
            status = response.status
            body = response.read(_MAX_BYTES + 1, decode_content=True)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise FetchFailed(f"{url} cannot be read: {error}") from error
    if status != HTTPStatus.OK:
        raise FetchFailed(f"{url} answered with status {status}")
    if len(body) > _MAX_BYTES:
        raise FetchFailed(f"{url} answered with more than {_MAX_BYTES} bytes")
    return _as_object(url, body)


def _as_object(url: str, body: bytes) -> JsonObject:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FetchFailed(f"{url} did not answer with JSON") from error
    if not isinstance(document, dict):
        raise FetchFailed(f"{url} did not answer with a JSON object")
    return document
