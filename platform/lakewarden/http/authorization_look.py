"""Whether the authorizer still has what was written to it, for `/health`: OpenFGA answers for a deleted store, too."""

import logging
import threading
import time
from typing import Final

from lakewarden import backends
from lakewarden.errors import Unavailable

logger = logging.getLogger(__name__)

_FRESH_S: Final = 15.0


class AuthorizationLook:
    """Asks in a thread of its own, at most every 15 seconds, and only while somebody wants to know."""

    def __init__(self) -> None:
        self._began = float("-inf")
        self._thread: threading.Thread | None = None
        self._is_lost = False

    def is_lost(self) -> bool:
        """What was found last; returns at once."""
        is_asking = self._thread is not None and self._thread.is_alive()
        if not is_asking and time.monotonic() - self._began >= _FRESH_S:
            self._began = time.monotonic()
            self._thread = threading.Thread(target=self._ask, name="lakewarden authorization", daemon=True)
            self._thread.start()
        return self._is_lost

    def _ask(self) -> None:
        try:
            is_lost = backends.is_authorization_lost()
        except Unavailable:
            return  # one that does not answer is not lost
        if is_lost and not self._is_lost:
            logger.error("OpenFGA no longer has the store of this installation: run `lakewarden migrate`")
        self._is_lost = is_lost


AUTHORIZATION: Final = AuthorizationLook()
