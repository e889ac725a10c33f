"""The settings of OpenFGA, and what contradicts them."""

import pytest

from lakewarden import config
from lakewarden.config import Config, ConfigError


def read(**settings: str) -> Config:
    return config.read({f"LAKEWARDEN__{name}": value for name, value in settings.items()})


def test_the_backend_needs_an_address() -> None:
    with pytest.raises(ConfigError, match=r"backend is 'openfga', but openfga\.api_url is missing"):
        read(AUTHORIZATION__BACKEND="openfga")
    found = read(AUTHORIZATION__BACKEND="openfga", OPENFGA__API_URL="http://127.0.0.1:8080")
    assert (found.openfga.store, found.openfga.timeout_s, found.openfga.api_token) == ("lakewarden", 3, None)


def test_the_key_is_shown_nowhere() -> None:
    found = read(OPENFGA__API_URL="http://127.0.0.1:8080", OPENFGA__API_TOKEN="hidden")
    assert "hidden" not in repr(found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENFGA__API_URL", "127.0.0.1:8080"),
        ("OPENFGA__STORE", "ab"),
        ("OPENFGA__STORE", "with/slash"),
        # the SDK would take a tenth of a second for a hundred seconds
        ("OPENFGA__TIMEOUT_S", "0.1"),
        ("OPENFGA__API_TOKEN", ""),
    ],
)
def test_wrong_values_are_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"LAKEWARDEN__{name}"):
        read(**{name: value})
