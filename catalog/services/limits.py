"""Size limits of what callers store: properties of namespaces, tables and views, and whole metadata documents.

Something that already exceeds a limit (from an older release, or because the limit was lowered) may still be made
smaller.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from lakewarden import config
from lakewarden.errors import InvalidArgument
from lakewarden.memory import hold

if TYPE_CHECKING:
    from catalog.services.pointer import NewMetadata, Stored

WHILE_WORKED_ON = 8
"""Bytes of memory for each byte of a document that is loaded or changed: packed, unpacked, changed and packed again."""


class _Properties(msgspec.Struct):
    properties: dict[str, str] = {}


def hold_document(identifier: UUID, length: int) -> None:
    """Reserve memory for a document of `length` bytes; raises Unavailable when there is not enough."""
    hold(identifier, WHILE_WORKED_ON * length)


def check(new: "NewMetadata", base: "Stored | None") -> None:
    """Raises InvalidArgument when metadata or properties exceed a limit, and are larger than those of `base`."""
    most, size = config.current().catalog.max_metadata_bytes, len(new.encoded)
    if size > most and (base is None or size > base.metadata_length):
        raise InvalidArgument(
            f"The metadata would be {size} bytes, and at most {most} are allowed (catalog.max_metadata_bytes): expire "
            "snapshots, or remove schemas and statistics that are no longer needed"
        )
    settings = config.current().catalog
    reason = _excess(new.properties, count=settings.max_properties, size=settings.max_properties_bytes, what="")
    if reason and (base is None or _has_grown(new.properties, msgspec.json.decode(base.metadata, type=_Properties))):
        raise InvalidArgument(reason)


def check_properties(properties: Mapping[str, str]) -> None:
    """Raises InvalidArgument for the properties of a new generic table as `check` does."""
    settings = config.current().catalog
    if reason := _excess(properties, count=settings.max_properties, size=settings.max_properties_bytes, what=""):
        raise InvalidArgument(reason)


def check_namespace(properties: Mapping[str, str], *, before: Mapping[str, str]) -> None:
    """Raises InvalidArgument for the properties of a namespace as `check` does."""
    settings = config.current().catalog
    reason = _excess(
        properties,
        count=settings.max_namespace_properties,
        size=settings.max_namespace_properties_bytes,
        what="namespace_",
    )
    if reason and _has_grown(properties, _Properties(dict(before))):
        raise InvalidArgument(reason)


def _excess(properties: Mapping[str, str], *, count: int, size: int, what: str) -> str | None:
    """The message for the first limit that properties exceed."""
    if len(properties) > count:
        return f"Too many properties: {len(properties)}, at most {count} are allowed (catalog.max_{what}properties)"
    settings, total = config.current().catalog, 0
    for key, value in properties.items():
        key_size, value_size = len(key.encode()), len(value.encode())
        if key_size > settings.max_property_key_bytes:
            most = f"at most {settings.max_property_key_bytes} are allowed (catalog.max_property_key_bytes)"
            return f"Invalid property {key[:80]!r}…: its key has {key_size} bytes, {most}"
        if value_size > settings.max_property_value_bytes:
            most = f"at most {settings.max_property_value_bytes} are allowed (catalog.max_property_value_bytes)"
            return f"Invalid property {key[:80]!r}: its value has {value_size} bytes, {most}"
        total += key_size + value_size
    if total > size:
        return (
            f"The properties would be {total} bytes together, and at most {size} are allowed "
            f"(catalog.max_{what}properties_bytes)"
        )
    return None


def _has_grown(properties: Mapping[str, str], before: _Properties) -> bool:
    """Whether any property is new or longer than it was."""
    known = before.properties
    return any(len(value) > len(known.get(key, "")) or key not in known for key, value in properties.items())
