"""Metadata files in the warehouse: names, writes, reads and, when they are certainly unused, removes them."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from django.db import IntegrityError
from isal import igzip

from catalog.iceberg import metadata_file_decoding
from catalog.services.locations import is_known_missing, lies_in
from lakewarden import config
from lakewarden.errors import (
    CommitStateUnknown,
    InvalidArgument,
    LakewardenError,
    Unavailable,
    ValidationFailed,
)
from lakewarden.ids import new_id
from lakewarden.memory import hold
from lakewarden.storage.interface import FileMissing, OutOfReach, StorageError, StorageUnavailable
from tenants.models import Warehouse
from tenants.services.warehouse_secrets import storage_of

logger = logging.getLogger(__name__)

_WHILE_READ = 12  # bytes of memory for each byte of a file that is checked and unpacked


def write(warehouse: Warehouse, location: str, metadata: bytes, *, version: int, properties: Mapping[str, str]) -> str:
    """Write version `version` of the metadata of the table at `location`; returns the file's location.

    Raises as `prepare` and `store` do.
    """
    target, content = prepare(warehouse, location, metadata, version=version, properties=properties)
    store(warehouse, target, content)
    return target


def prepare(
    warehouse: Warehouse, location: str, metadata: bytes, *, version: int, properties: Mapping[str, str]
) -> tuple[str, bytes]:
    """The location and the content of a new metadata file.

    Honours `write.metadata.compression-codec` (none, gzip) and `write.metadata.path` (inside `location`); raises
    InvalidArgument for another value of these.
    """
    codec = properties.get("write.metadata.compression-codec", "none").lower()
    if codec not in {"none", "gzip"}:
        raise InvalidArgument(f"Invalid write.metadata.compression-codec {codec!r}: none or gzip is expected")
    suffix = ".gz.metadata.json" if codec == "gzip" else ".metadata.json"
    target = f"{_folder(warehouse, location, properties)}/{version:05d}-{new_id()}{suffix}"
    return target, igzip.compress(metadata, 1) if codec == "gzip" else metadata


def store(warehouse: Warehouse, target: str, content: bytes) -> None:
    """Write a new metadata file that survives a crash. Raises Unavailable when the storage fails."""
    try:
        storage_of(warehouse).write_new(target, content)
    except OutOfReach as error:
        raise InvalidArgument(f"Invalid location: {error}") from error
    except StorageError as error:
        raise Unavailable(
            f"The metadata could not be written, nothing was changed: {error}", retry_after_s=5
        ) from error


def _folder(warehouse: Warehouse, location: str, properties: Mapping[str, str]) -> str:
    asked = properties.get("write.metadata.path", "").rstrip("/")
    if asked and not lies_in(warehouse, asked, location):
        raise InvalidArgument(f"Invalid write.metadata.path {asked!r}: it is not inside the location {location}")
    return asked or f"{location}/metadata"


def read(warehouse: Warehouse, location: str) -> bytes:
    """A whole metadata file, as it is stored.

    Raises ValidationFailed when it does not exist, cannot be read or is too large, packed or unpacked, and Unavailable
    when too many files are being read.
    """
    most = config.current().catalog.max_metadata_bytes
    try:
        content = storage_of(warehouse).read(location, limit=most)
    except FileMissing as error:
        raise ValidationFailed(f"Metadata file does not exist: {location}") from error
    except StorageUnavailable as error:
        raise Unavailable(f"{error}; nothing was changed", retry_after_s=5) from error
    except StorageError as error:
        raise ValidationFailed(f"Metadata file cannot be read: {error}") from error
    size = metadata_file_decoding.length(content)
    if size > most:
        raise ValidationFailed(
            f"The metadata file {location} has {size} bytes, unpacked from gzip, and at most {most} are allowed "
            "(catalog.max_metadata_bytes)"
        )
    hold(location, _WHILE_READ * size)
    return content


def ensure_there(warehouse: Warehouse, location: str) -> None:
    """Raises ValidationFailed when the storage knows, without a request to a server, that the file is missing."""
    if is_known_missing(warehouse, location):
        raise ValidationFailed(f"Metadata file does not exist: {location}")


@contextmanager
def discarding(warehouse: Warehouse, written: list[str]) -> Iterator[None]:
    """Remove the files `written` so far if the block fails; not if its outcome is unknown."""
    try:
        yield
    except CommitStateUnknown:
        raise
    except (LakewardenError, IntegrityError):
        discard(warehouse, written)
        raise


def discard(warehouse: Warehouse, locations: Sequence[str]) -> None:
    """Remove files that nothing points to. A file that cannot be removed stays, does no harm, and is logged."""
    for location in locations:
        try:
            storage_of(warehouse).delete(location)
        except StorageError as error:
            logger.warning("A metadata file that is not used could not be removed: %s", error)
