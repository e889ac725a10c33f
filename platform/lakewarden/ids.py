"""Time-ordered identifiers (UUIDv7, RFC 9562): new rows land at the end of their indexes."""

import uuid

import uuid_utils


def new_id() -> uuid.UUID:
    return uuid.UUID(int=uuid_utils.uuid7().int)


def new_id_text() -> str:
    """Like `new_id`, as text of 36 characters."""
    return str(uuid_utils.uuid7())
