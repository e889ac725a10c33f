"""Updates of the table itself: uuid, format version, location, properties, encryption keys."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

from catalog.iceberg import wire
from catalog.iceberg.table_draft import NEWEST_FORMAT, TableDraft
from catalog.iceberg.wire import Int32, Wire
from lakewarden.errors import BadRequest, ImmutableProperty, InvalidArgument

KEYS: Final = "encryption-keys"
IMMUTABLE: Final = frozenset({"encryption.key-id"})
"""Properties that cannot change once they are set: the table's files are encrypted with this key."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class AssignUuid(Wire):
    uuid: str


class UpgradeFormatVersion(Wire):
    format_version: Int32


class SetLocation(Wire):
    location: str


class SetProperties(Wire):
    """`updated` is the name of `updates` in early clients."""

    updates: dict[str, str] | None = None
    updated: dict[str, str] | None = None


class RemoveProperties(Wire):
    """`removed` is the name of `removals` in early clients."""

    removals: list[str] | None = None
    removed: list[str] | None = None


class EncryptedKey(Wire):
    key_id: str
    encrypted_key_metadata: bytes
    encrypted_by_id: str | None = None
    properties: dict[str, str] | None = None


class AddEncryptionKey(Wire):
    encryption_key: Raw


class RemoveEncryptionKey(Wire):
    key_id: str


class _Keyed(Wire):
    key_id: str


_KEY = wire.decoder(EncryptedKey)
_KEYED = msgspec.json.Decoder(_Keyed)


def check_uuid(uuid: str) -> None:
    """Raises InvalidArgument unless the text is a UUID in its usual form."""
    if _UUID.fullmatch(uuid) is None:
        raise InvalidArgument(f"Invalid uuid: {uuid}; 36 characters as in 9c12d441-03fe-4693-9a96-a0705ddf69c1")


def clean_location(location: str) -> str:
    """The location without trailing slashes. Raises InvalidArgument if it is empty."""
    if not location:
        raise InvalidArgument("Invalid location: (empty)")
    # `s3://` alone is a scheme, not a folder with a trailing slash
    while location.endswith("/") and not location.endswith("://"):
        location = location[:-1]
    return location


def check_format_version(version: int) -> None:
    """Raises InvalidArgument for a format version that is not supported."""
    if not 1 <= version <= NEWEST_FORMAT:
        raise InvalidArgument(f"Unsupported format version: v{version} (supported: v1 to v{NEWEST_FORMAT})")


def assign_uuid(draft: TableDraft, update: AssignUuid) -> None:
    """A table's uuid is its id, so it never changes once it is created; saying it again changes nothing."""
    check_uuid(update.uuid)
    if draft.is_new:
        draft.put("table-uuid", update.uuid)
        draft.changed = True
    elif update.uuid.lower() != draft.text("table-uuid").lower():
        raise InvalidArgument(f"Cannot reassign uuid: it is {draft.text('table-uuid')}")


def upgrade_format_version(draft: TableDraft, update: UpgradeFormatVersion) -> None:
    """Raise the format version; `metadata_builder` adds the members that the new version requires."""
    version = update.format_version
    if version > NEWEST_FORMAT:
        raise InvalidArgument(
            f"Cannot upgrade table to unsupported format version: v{version} (supported: v{NEWEST_FORMAT})",
        )
    if version < draft.format_version:
        raise InvalidArgument(f"Cannot downgrade v{draft.format_version} table to v{version}")
    if version != draft.format_version:
        # decoded members are kept: what the version changes in the document is written once, at the end of the commit
        draft.put("format-version", version)
        draft.changed = True


def set_location(draft: TableDraft, update: SetLocation) -> None:
    location = clean_location(update.location)
    if draft.text("location") != location:
        draft.put("location", location)
        draft.changed = True


def property_updates(update: SetProperties) -> dict[str, str]:
    """The properties to set, by either name. Raises BadRequest if both are missing."""
    found = update.updates if update.updates is not None else update.updated
    if found is None:
        raise BadRequest("Object missing required field `updates`")
    return found


def property_removals(update: RemoveProperties) -> list[str]:
    """The properties to remove, by either name. Raises BadRequest if both are missing."""
    found = update.removals if update.removals is not None else update.removed
    if found is None:
        raise BadRequest("Object missing required field `removals`")
    return found


def set_properties(draft: TableDraft, update: SetProperties) -> None:
    if found := property_updates(update):
        _ensure_kept(draft, {name: found[name] for name in IMMUTABLE & found.keys()})
        # a change even if the values are equal, as in Iceberg's Java library: clients expect a new metadata file
        draft.properties.update(found)
        draft.changed = True


def remove_properties(draft: TableDraft, update: RemoveProperties) -> None:
    """Remove properties; missing ones are ignored."""
    if found := property_removals(update):
        _ensure_kept(draft, dict.fromkeys(IMMUTABLE.intersection(found)))
        for name in found:
            draft.properties.pop(name, None)
        draft.changed = True


def _ensure_kept(draft: TableDraft, asked: Mapping[str, str | None]) -> None:
    """Raises ImmutableProperty if a property that cannot change would get another value (None: be removed)."""
    for name, value in asked.items():
        kept = draft.properties.get(name)
        if kept is not None and value != kept and not draft.is_new:
            change = "removed" if value is None else f"changed to {value!r}"
            raise ImmutableProperty(
                f"The table property {name} is {kept!r} and cannot be {change}: it is immutable once it is set"
            )


def add_encryption_key(draft: TableDraft, update: AddEncryptionKey) -> None:
    """Add an encryption key, unless the table has one with this id."""
    key = wire.parse(_KEY, update.encryption_key, "encryption-key")
    keys = draft.keyed(KEYS, _key_id)
    # not replaced: existing snapshots may be encrypted with the key of this id
    if key.key_id in keys:
        return
    keys.append(key.key_id, wire.dump(wire.members(update.encryption_key, "encryption-key")))
    draft.changed = True


def remove_encryption_key(draft: TableDraft, update: RemoveEncryptionKey) -> None:
    """Remove the encryption key with this id, if it exists."""
    if draft.keyed(KEYS, _key_id).remove({update.key_id}):
        draft.changed = True


def _key_id(raw: Raw) -> str:
    return _KEYED.decode(raw).key_id
