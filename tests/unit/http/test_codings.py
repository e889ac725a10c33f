"""Content codings: what a client prefers, and bodies unpacked within a bound."""

import gzip

import pytest
import zstandard

from lakewarden.errors import BadRequest, PayloadTooLarge
from lakewarden.http.codings import packed, preferred, unpacked

PLAIN = b'{"namespace": ["sales"]}' * 100
LIMIT = 1 << 20
PACKED = {"gzip": gzip.compress(PLAIN), "zstd": zstandard.compress(PLAIN)}
each_coding = pytest.mark.parametrize("coding", PACKED)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("", None),
        ("identity, br", None),
        ("gzip", "gzip"),
        ("x-gzip", "gzip"),
        ("gzip, deflate, br, zstd", "gzip"),
        ("zstd, gzip", "gzip"),
        ("zstd", "zstd"),
        ("ZSTD;q=1.0, gzip;q=0.9", "zstd"),
        ("gzip; q=0.1, zstd; q=0.2", "zstd"),
        ("gzip;q=0, zstd", "zstd"),
        ("zstd;q=0.5, gzip", "gzip"),
        ("zstd;q=0", None),
        ("*", "gzip"),
        ("*;q=0, gzip", "gzip"),
        ("gzip;q=0, *", "zstd"),
        ("gzip;q=0.000, *;q=0", None),
        ("gzip;q=much, zstd;q=nan", None),
        ("gzip;q=-1", None),
    ],
)
def test_preferred_coding(accepted: str, coding: str | None) -> None:
    assert preferred(accepted) == coding


@each_coding
def test_what_is_packed_can_be_unpacked(coding: str) -> None:
    assert packed(PLAIN, coding) != PLAIN
    assert unpacked(packed(PLAIN, coding), coding, limit=LIMIT) == PLAIN


@pytest.mark.parametrize("coding", ["", "identity", " , Identity"])
def test_a_plain_body_stays(coding: str) -> None:
    assert unpacked(PLAIN, coding, limit=LIMIT) == PLAIN


def test_codings_are_taken_off_in_turn() -> None:
    assert unpacked(gzip.compress(PACKED["zstd"]), "zstd, X-GZIP", limit=LIMIT) == PLAIN


@each_coding
def test_several_members_are_one_body(coding: str) -> None:
    assert unpacked(PACKED[coding] * 3, coding, limit=LIMIT) == PLAIN * 3


@each_coding
def test_an_empty_body_needs_no_coding(coding: str) -> None:
    assert unpacked(b"", coding, limit=LIMIT) == b""


@each_coding
def test_a_body_may_be_as_large_as_the_limit_and_no_larger(coding: str) -> None:
    assert unpacked(PACKED[coding], coding, limit=len(PLAIN)) == PLAIN
    for times in (1, 2):
        with pytest.raises(PayloadTooLarge, match=str(len(PLAIN) - 1)):
            unpacked(PACKED[coding] * times, coding, limit=len(PLAIN) - 1)


@each_coding
def test_a_bomb_is_refused_before_it_fills_the_memory(coding: str) -> None:
    zeros = bytes(1 << 26)
    bomb = gzip.compress(zeros) if coding == "gzip" else zstandard.compress(zeros)
    with pytest.raises(PayloadTooLarge):
        unpacked(bomb, coding, limit=LIMIT)
    with pytest.raises(PayloadTooLarge):
        unpacked(gzip.compress(bomb), f"{coding}, gzip", limit=LIMIT)


@each_coding
def test_corrupt_bodies_are_refused(coding: str) -> None:
    whole = PACKED[coding]
    for body in (whole[:-1], whole[:5], b"plain", whole + b"trailing", b"\x00" + whole):
        with pytest.raises(BadRequest, match=f"not valid {coding}"):
            unpacked(body, coding, limit=LIMIT)


@each_coding
def test_a_long_row_of_empty_members_is_refused(coding: str) -> None:
    empty = gzip.compress(b"") if coding == "gzip" else zstandard.compress(b"")
    with pytest.raises(BadRequest, match="more than 100"):
        unpacked(empty * 1000, coding, limit=LIMIT)


def test_a_window_larger_than_http_allows_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    with pytest.raises(BadRequest, match="not valid zstd"):
        unpacked(stream.compress(PLAIN) + stream.flush(), "zstd", limit=LIMIT)


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, compress", "gzip;q=1"])
def test_unknown_codings_are_named(coding: str) -> None:
    with pytest.raises(BadRequest, match="gzip, zstd or identity is expected"):
        unpacked(PACKED["gzip"], coding, limit=LIMIT)


def test_a_pile_of_codings_is_refused() -> None:
    with pytest.raises(BadRequest, match="at most 3"):
        unpacked(PACKED["gzip"], "gzip, gzip, gzip, gzip", limit=LIMIT)
