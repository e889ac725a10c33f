import gzip
import json
import zlib

import pytest

from catalog.documents import inflated, metadata_of, pack, spliced, unpacked

LOCATION = 'file:///lake/"quoted"/ünïcödé.metadata.json'
METADATA = json.dumps({"properties": {f"key {number}": "value" for number in range(500)}}).encode()


@pytest.mark.parametrize(
    "metadata", [b"{}", METADATA, b'{"a":"' + b"x" * 3_000_000 + b'"}'], ids=["tiny", "usual", "large"]
)
def test_a_document_is_what_was_packed(metadata: bytes) -> None:
    document = pack(LOCATION, metadata)
    assert metadata_of(document, LOCATION) == metadata
    assert inflated(document) == unpacked(LOCATION, metadata)
    assert (document.crc, document.length) == (zlib.crc32(inflated(document)), len(inflated(document)))
    assert json.loads(inflated(document) + b"}") == {"metadata-location": LOCATION, "metadata": json.loads(metadata)}


@pytest.mark.parametrize("length", [1, 12, 65_534, 65_535, 65_536, 200_000])
def test_a_spliced_document_is_one_whole_gzip_member(length: int) -> None:
    document, suffix = pack(LOCATION, METADATA), b"s" * length
    reader = zlib.decompressobj(wbits=31)
    assert reader.decompress(spliced(document, suffix)) == inflated(document) + suffix
    assert reader.eof
    assert reader.unused_data == b""


def test_a_spliced_document_is_checked_by_its_trailer() -> None:
    content = bytearray(spliced(pack(LOCATION, METADATA), b"}"))
    content[-5] ^= 1
    with pytest.raises(gzip.BadGzipFile, match="CRC"):
        gzip.decompress(bytes(content))
