"""Why the certificate of a broker is refused: librdkafka gives the same advice whatever is wrong with it."""

import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_BROKER: Final = re.compile(r"ssl://(?P<host>[^/]+):(?P<port>\d+)/")
_OF_A_CERTIFICATE: Final = "certificate verify failed"
_PATIENCE_S: Final = 2.0
_NO_AUTHORITY: Final = {2, 7, 18, 19, 20, 21}
"""OpenSSL's codes of issuers that are missing, not trusted, or others of the same name."""


def refused_certificate(said: str, options: Mapping[str, str]) -> str | None:
    """What is wrong with the certificate of the broker that librdkafka names in `said`, which is asked once more.

    None: it is not about a certificate, or it cannot be found out.
    """
    broker = _BROKER.search(said)
    if broker is None or _OF_A_CERTIFICATE not in said:
        return None
    host, port = broker["host"].strip("[]"), int(broker["port"])
    try:
        trust = _trust(options)
        with (
            socket.create_connection((host, port), timeout=_PATIENCE_S) as connection,
            trust.wrap_socket(connection, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        advice = "; ssl.ca.location must name its authority" if error.verify_code in _NO_AUTHORITY else ""
        return f"the certificate of {host}:{port} is refused: {error.verify_message.rstrip('.')}{advice}"
    except (OSError, TypeError, ValueError):
        return None


def _trust(options: Mapping[str, str]) -> ssl.SSLContext:
    """As librdkafka would trust. Raises OSError, ValueError."""
    place = options.get("ssl.ca.location")
    if place in {None, "", "probe"}:
        # text between certificates may have any letters, which this library refuses and librdkafka does not
        content = options.get("ssl.ca.pem", "").encode("ascii", "ignore").decode()
        made = ssl.create_default_context(cadata=content or None)
    else:
        where = "capath" if Path(str(place)).is_dir() else "cafile"
        made = ssl.create_default_context(**{where: place})  # type: ignore[arg-type]
    made.check_hostname = options.get("ssl.endpoint.identification.algorithm", "https") != "none"
    return made
