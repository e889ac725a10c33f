"""Where the content of a batch is, if the log does not hold it itself; for the gateway and for the pipeline."""

from typing import Final

import msgspec

IN_KAFKA: Final = 2
"""Added to the `encoding` of a batch whose `content` is a reference."""
ID_HEADER: Final = "lakewarden-id"


class Reference(msgspec.Struct, frozen=True):
    """A record of Kafka. `id` is its header: a topic that was made anew has other records under the same offsets.

    `crc` is the CRC-32 of its value; None: written by a release before.
    """

    topic: str
    partition: int
    offset: int
    id: str
    crc: int | None = None


def pack(reference: Reference) -> bytes:
    """As JSON, which SQL and people can read."""
    return msgspec.json.encode(reference)


def unpack(content: bytes) -> Reference:
    """Raises msgspec.DecodeError for what is none."""
    return _DECODER.decode(content)


_DECODER: Final = msgspec.json.Decoder(Reference)
