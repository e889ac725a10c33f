from typing import Any

import pytest

from lakewarden.errors import BadRequest
from tenants.models.delete_profile import LEAST_EXPIRATION_S, MOST_EXPIRATION_S, DeleteProfile


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ({"type": "hard"}, None),
        ({"type": "soft", "expiration-seconds": LEAST_EXPIRATION_S}, 1),
        ({"type": "soft", "expiration-seconds": MOST_EXPIRATION_S}, MOST_EXPIRATION_S),
    ],
)
def test_a_profile_is_written_as_it_is_read(value: dict[str, Any], seconds: int | None) -> None:
    profile = DeleteProfile.parse(value)
    assert profile.expiration_s == seconds
    assert profile.dump() == value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "is not known"),
        ({"type": "soft"}, "is not known"),
        ({"type": ["soft"]}, "is not known"),
        ({"type": "hard", "expiration-seconds": 60}, "is not known"),
        ({"type": "soft", "expiration-seconds": 0}, "expiration-seconds is '0'"),
        ({"type": "soft", "expiration-seconds": MOST_EXPIRATION_S + 1}, "ten years"),
        ({"type": "soft", "expiration-seconds": 60.0}, "a whole number"),
        ({"type": "soft", "expiration-seconds": True}, "a whole number"),
    ],
)
def test_a_profile_that_cannot_be_is_refused(value: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        DeleteProfile.parse(value)
