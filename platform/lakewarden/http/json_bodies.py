"""Decodes the JSON bodies of requests, within bounds of size and number of values."""

from contextlib import nullcontext
from threading import Lock
from typing import Final, TypeVar

import msgspec

from lakewarden import config
from lakewarden.errors import BadRequest, PayloadTooLarge
from lakewarden.memory import UNCOUNTED, hold

T = TypeVar("T")

_PLAIN_PART: Final = 5  # of the values that a body may hold, a plain one may hold this part: Python looks at each
_PER_VALUE: Final = 100  # bytes that a small value takes at most when it is decoded
_DECODING: Final = Lock()


def decode(body: bytes, shape: type[T], *, may_be_large: bool) -> T:
    """The JSON body as `shape`; unknown members are ignored. Raises BadRequest that says where it is wrong.

    Decoding blocks all other threads: only bodies that hold whole documents may be large (PayloadTooLarge), and
    such ones are decoded one after another.
    """
    settings, size = config.current().server, len(body)
    most = settings.max_plain_body_bytes
    if size > most and not may_be_large:
        raise PayloadTooLarge(f"The request body has {size} bytes; this route accepts at most {most}")
    values, most = 1 + body.count(b","), settings.max_body_values // (1 if may_be_large else _PLAIN_PART)
    if values > most:
        raise PayloadTooLarge(
            f"The request body contains {values} values, by its commas; this route accepts at most {most} "
            "(server.max_body_values)"
        )
    hold("body", size + _PER_VALUE * values)
    try:
        with nullcontext() if size < UNCOUNTED else _DECODING:
            return msgspec.json.decode(body or b"null", type=shape)
    except msgspec.ValidationError as error:
        if not body:
            raise BadRequest("The request body is empty: a JSON object is expected") from None
        raise BadRequest(f"Invalid request body: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"Malformed JSON in the request body: {error}") from None
    except RecursionError:
        raise BadRequest("Malformed JSON in the request body: it is nested too deeply") from None
