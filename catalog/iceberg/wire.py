"""Reads JSON of other writers: exact numbers, limited depth, errors that name the member.

Everything that parses a request, a foreign metadata file or a stored document goes through here.
"""

import re
from collections.abc import Callable
from itertools import accumulate
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Raw

from lakewarden.errors import BadRequest

T = TypeVar("T")

Json: TypeAlias = bytes | Raw
"""A JSON value exactly as it was written."""
Members: TypeAlias = dict[str, Raw]
"""The members of a JSON object, each exactly as it was written: members that are not decoded stay unchanged."""

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

MAX_DEPTH: Final = 100
"""Most levels of arrays and objects in a value; a struct in a struct takes three."""
NULL: Final = Raw(b"null")

# an unclosed string matches up to the end, so malicious text is scanned only once
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS: Final = {each: 1 if each in b"[{" else -1 for each in b"[]{}"}
_MEMBERS = msgspec.json.Decoder(Members)
_LIST = msgspec.json.Decoder(list[Raw])
_ANY = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


class Wire(msgspec.Struct, rename="kebab"):
    """The base class of typed JSON objects: members in kebab case; unknown members are ignored."""


def decoder(shape: Callable[..., T]) -> msgspec.json.Decoder[T]:
    """Build a decoder for a wire type; to be called once, at import."""
    return msgspec.json.Decoder(shape)


def parse(decoder: msgspec.json.Decoder[T], raw: Json, what: str) -> T:
    """Decode `raw`, which messages call `what`. Raises BadRequest if it does not match the type."""
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{what}: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"{what} is not valid JSON: {error}") from error
    except RecursionError as error:
        raise BadRequest(f"{what} is nested too deeply: at most {MAX_DEPTH} levels are allowed") from error


def members(raw: Json, what: str) -> Members:
    """Decode a JSON object by one level; its values stay raw."""
    return parse(_MEMBERS, raw, what)


def items(raw: Json, what: str) -> list[Raw]:
    """Decode a JSON array by one level; its values stay raw."""
    return parse(_LIST, raw, what)


def value(raw: Json, what: str) -> Any:  # noqa: ANN401 - any JSON value is what it reads
    """Decode a value completely into Python objects."""
    return parse(_ANY, raw, what)


def is_null(raw: Json) -> bool:
    """Whether a member is null or absent (its default is `NULL`)."""
    return raw is NULL or bytes(raw) == b"null"


def dump(data: object) -> Raw:
    """Encode Python data, wire types and raw values as JSON."""
    return Raw(_encode(data))


def compact(data: object) -> bytes:
    """Like `dump`, but returns bytes."""
    return _encode(data)


def check_text(raw: Json, what: str) -> None:
    """Raises BadRequest for JSON that could break a later reader: invalid UTF-8, or too many levels."""
    text = bytes(raw)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"{what} is not valid UTF-8: {error}") from error
    if text.count(b"{") + text.count(b"[") <= MAX_DEPTH:
        return
    brackets = _STRINGS.sub(b"", text).translate(None, _NOT_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_DEPTH:
        raise BadRequest(f"{what} is nested too deeply: at most {MAX_DEPTH} levels are allowed")
