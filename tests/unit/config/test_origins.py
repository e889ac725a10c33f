import pytest

from lakewarden.config import ConfigError, read

NAME = "LAKEWARDEN__SERVER__CORS_ORIGINS"


def test_origins_are_a_list() -> None:
    assert read({}).server.cors_origins == ()
    given = read({NAME: "https://a.example, http://localhost:3000,http://[::1]:8080"}).server.cors_origins
    assert given == ("https://a.example", "http://localhost:3000", "http://[::1]:8080")
    assert read({NAME: "*"}).server.cors_origins == ("*",)


@pytest.mark.parametrize(
    "value", ["a.example", "https://a.example/", "https://a.example/path", "null", "https://*.a b"]
)
def test_what_is_no_origin_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=f"{NAME}: .* is not a valid origin"):
        read({NAME: value})
