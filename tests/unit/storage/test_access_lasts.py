"""How long engines can use what they received last, by profile: no location is used anew before that."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewarden.storage.profiles import parse_profile
from tenants.models.reachable_location import LastAccess

S3 = {"type": "s3", "bucket": "lake", "region": "r", "flavor": "s3-compat", "sts-enabled": True}
ADLS = {"type": "adls", "account-name": "lakehouse", "filesystem": "data", "sas-token-validity-seconds": 600}
GCS = {"type": "gcs", "bucket": "lake"}
NOW = datetime(2026, 11, 22, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("profile", "seconds"),
    [
        (S3, 3600),
        (S3 | {"sts-token-validity-seconds": 43200}, 43200),
        (S3 | {"sts-enabled": False}, 900),
        (S3 | {"sts-enabled": False, "remote-signing-enabled": False}, 0),
        (ADLS, 600),
        (ADLS | {"sas-enabled": False}, 0),
        (GCS, 3600),
        (GCS | {"sts-enabled": False}, 0),
        ({"type": "local", "base-path": "/srv/lake"}, 0),
    ],
)
def test_access_lasts_as_long_as_the_profile_says(profile: dict[str, Any], seconds: int) -> None:
    assert parse_profile(profile).access_lasts == timedelta(seconds=seconds)


def test_requests_in_progress_have_some_time_more() -> None:
    assert LastAccess.of(HOUR, None) == LastAccess(3720)
    assert LastAccess.of(HOUR, None).after(60) == LastAccess(3780)
    assert LastAccess.of(timedelta(0), None).after(60) == LastAccess(0)


def test_the_last_of_two_profiles_counts() -> None:
    assert LastAccess(0).end(NOW) is None
    assert LastAccess(60, NOW + HOUR).end(NOW) == NOW + HOUR
    assert LastAccess(7200, NOW + HOUR).end(NOW) == NOW + 2 * HOUR
