import gzip

import pytest

from lakewarden.http.responses import accepts_gzip, compress, json_response, no_content


@pytest.mark.parametrize(
    ("header", "accepts"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("x-gzip", True),
        ("*", True),
        ("br, gzip;q=0.5", True),
        ("deflate , gzip ; q = 1.0", True),
        ("", False),
        ("identity", False),
        ("br", False),
        ("gzipped", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("*;q=0", False),
        ("*, gzip;q=0", False),
        ("gzip, *;q=0", True),
    ],
)
def test_accepts_gzip(*, header: str, accepts: bool) -> None:
    assert accepts_gzip(header) is accepts


def test_a_large_answer_is_compressed_where_accepted() -> None:
    plain, packed = json_response(["x" * 2000]), json_response(["x" * 2000])
    compress(plain, "identity")
    compress(packed, "gzip")
    assert gzip.decompress(packed.content) == plain.content
    assert packed["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain
    assert plain["Vary"] == packed["Vary"] == "Accept-Encoding"


def test_a_small_answer_and_a_compressed_one_are_left_alone() -> None:
    small, done = json_response(["x"]), json_response(["x" * 2000])
    done["Content-Encoding"] = "gzip"
    before = done.content
    compress(small, "gzip")
    compress(done, "gzip")
    assert small.content == b'["x"]'
    assert done.content == before


def test_no_content_has_no_type() -> None:
    assert no_content().status_code == 204
    assert "Content-Type" not in no_content()
