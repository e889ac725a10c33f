"""References to contents in Kafka are JSON, which SQL reads, too."""

import json

import msgspec
import pytest

from ingest.references import Reference, pack, unpack

REFERENCE = Reference("lakewarden-ingest", 11, 2**53 + 1, "01a207c7314575dd82170fa76c0328cd")


def test_a_reference_is_read_as_it_was_written() -> None:
    packed = pack(REFERENCE)
    assert unpack(packed) == REFERENCE
    assert json.loads(packed)["offset"] == 2**53 + 1


@pytest.mark.parametrize(
    "content", [b"[]", b"{}", b'{"topic": "t", "partition": 0, "offset": 1.5, "id": "x"}', b"\x1f\x8b"]
)
def test_a_content_is_not_taken_for_a_reference(content: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        unpack(content)
