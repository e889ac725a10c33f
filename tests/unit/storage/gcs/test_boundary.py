"""The exchange for a token of one table, compared with that of Google's library."""

import json
from urllib.parse import parse_qs, unquote

import pytest
from google.auth import downscoped
from google.oauth2 import sts

from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.gcs.boundary import boundary, exchange_form


class Recorder:
    """Stands where Google's library sends its request."""

    status = 200
    data = json.dumps({"access_token": "t", "issued_token_type": "x", "token_type": "Bearer"}).encode()

    def __init__(self) -> None:
        self.body = ""

    def __call__(self, *, body: bytes | str, **_: object) -> "Recorder":
        self.body = body.decode() if isinstance(body, bytes) else body
        return self


def by_google(source: str, limits: dict[str, object]) -> dict[str, str]:
    """The fields of the form that Google's library sends for the same rule."""
    (rule,) = limits["accessBoundary"]["accessBoundaryRules"]  # type: ignore[index]
    theirs = downscoped.CredentialAccessBoundary(
        [
            downscoped.AccessBoundaryRule(
                rule["availableResource"],
                rule["availablePermissions"],
                downscoped.AvailabilityCondition(
                    rule["availabilityCondition"]["expression"], rule["availabilityCondition"]["title"]
                ),
            )
        ]
    )
    recorder = Recorder()
    sts.Client("https://sts.example").exchange_token(
        recorder,
        grant_type="urn:ietf:params:oauth:grant-type:token-exchange",
        subject_token=source,
        subject_token_type="urn:ietf:params:oauth:token-type:access_token",
        requested_token_type="urn:ietf:params:oauth:token-type:access_token",
        additional_options=theirs.to_json(),
    )
    return {name: value for name, (value,) in parse_qs(recorder.body).items()}


@pytest.mark.parametrize("level", AccessLevel)
def test_the_form_of_an_exchange_is_that_of_googles_library(level: AccessLevel) -> None:
    limits = boundary(bucket="lake", prefix="wh/a b/ü%2F/", level=level)
    mine, theirs = exchange_form("source", limits), by_google("source", limits)
    assert {**mine, "options": None} == {**theirs, "options": None}
    assert json.loads(unquote(mine["options"])) == json.loads(unquote(theirs["options"])) == limits


def test_a_boundary_names_one_prefix_of_one_bucket() -> None:
    (rule,) = boundary(bucket="lake", prefix="wh/t/", level=AccessLevel.READ)["accessBoundary"]["accessBoundaryRules"]
    assert rule == {
        "availableResource": "//storage.googleapis.com/projects/_/buckets/lake",
        "availablePermissions": ["inRole:roles/storage.objectViewer"],
        "availabilityCondition": {
            "title": "one-table",
            "expression": "resource.name.startsWith('projects/_/buckets/lake/objects/wh/t/')"
            " || resource.name.startsWith('projects/_/buckets/lake/folders/wh/t/')"
            " || api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('wh/t/')",
        },
    }


def test_a_writer_may_create_and_delete_and_a_reader_may_not() -> None:
    (rule,) = boundary(bucket="lake", prefix="wh/t/", level=AccessLevel.WRITE)["accessBoundary"]["accessBoundaryRules"]
    assert rule["availablePermissions"] == ["inRole:roles/storage.objectUser"]


@pytest.mark.parametrize("prefix", ["wh/t", "", "wh/t') || true || x.startsWith('/", "wh\\'/", "wh\n/"])
def test_a_prefix_that_would_widen_the_condition_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="access boundary"):
        boundary(bucket="lake", prefix=prefix, level=AccessLevel.READ)
