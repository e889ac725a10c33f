"""Plain requests to an object store, for what obstore cannot do: lists and removals of any key, conditions."""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

import urllib3

from lakewarden.config import StorageConfig
from lakewarden.storage.object_faults import Fault, StoreFailed

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

MOST_BYTES: Final = 64 * 2**20
"""Of one answer, which lists up to 1,000 objects."""
_CONNECTIONS: Final = 64
_LATER: Final = (408, 429, 500, 502, 503, 504)


class ObjectRequests:
    """Sends requests below one address; thread-safe. `authorize` gives what proves the identity: query and headers."""

    def __init__(
        self,
        address: str,
        *,
        authorize: Callable[[], tuple[Mapping[str, str], Mapping[str, str]]],
        code_of: Callable[["BaseHTTPResponse"], str | None],
        settings: StorageConfig,
        retries: int | None = None,
    ) -> None:
        """`code_of` reads the error's code from an answer; `retries` are the settings' unless given."""
        self._address, self._authorize, self._code_of = address, authorize, code_of
        self._timeout = urllib3.Timeout(connect=settings.connect_timeout_s, read=settings.request_timeout_s)
        again = urllib3.Retry(
            settings.retries if retries is None else retries,
            redirect=0,
            status_forcelist=_LATER,
            raise_on_status=False,
            allowed_methods=None,
            backoff_factor=settings.retry_pause_s,
            backoff_jitter=settings.retry_pause_s,
            backoff_max=settings.request_timeout_s,
        )
        self._pool = urllib3.PoolManager(maxsize=_CONNECTIONS, retries=again)

    def send(
        self,
        method: str,
        key: str = "",
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        expected: Collection[int] = (),
    ) -> "BaseHTTPResponse":
        """The answer, if it is a success or one of the `expected` statuses; StoreFailed otherwise.

        `key` follows the address after a slash; each character that is not plain is encoded.
        """
        proof, proof_headers = self._authorize()
        path = f"/{quote(key, safe='')}" if key else ""
        fields = urlencode({**(query or {}), **proof}, quote_via=quote)
        try:
            answer = self._pool.request(
                method,
                f"{self._address}{path}{'?' if fields else ''}{fields}",
                headers={**(headers or {}), **proof_headers},
                body=body,
                timeout=self._timeout,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise StoreFailed(Fault(is_timeout=_is_timeout(error))) from None
        if answer.status >= 300 and answer.status not in expected:  # noqa: PLR2004 the successes of HTTP are below
            raise StoreFailed(Fault(answer.status, self._code_of(answer)))
        return answer


def _is_timeout(error: urllib3.exceptions.HTTPError) -> bool:
    cause = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else error
    return isinstance(cause, urllib3.exceptions.TimeoutError)
