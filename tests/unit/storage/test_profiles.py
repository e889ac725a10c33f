from typing import Any

import pytest

from lakewarden.errors import BadRequest
from lakewarden.storage.interface import StorageError
from lakewarden.storage.local_uris import local_path
from lakewarden.storage.profiles import parse_profile


@pytest.mark.parametrize(
    ("path", "location"),
    [("/a/b", "file:///a/b"), ("/a//b/", "file:///a/b"), ("//a/./b", "file:///a/b"), ("/a b/ü", "file:///a b/ü")],
)
def test_a_local_profile_has_one_form(path: str, location: str) -> None:
    profile = parse_profile({"type": "local", "base-path": path})
    assert profile.location == location
    assert parse_profile(profile.dump()) == profile


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "type is missing: one of adls, gcs, local"),
        ([], r"\[\]"),
        ({}, "type is missing: one of adls, gcs, local"),
        ({"type": "floppy"}, "floppy"),
        ({"type": "local"}, "base-path"),
        ({"type": "local", "base-path": 7}, "base-path"),
        ({"type": "local", "base-path": "a/b"}, "not an absolute path"),
        ({"type": "local", "base-path": "/a/../b"}, "must not contain"),
        ({"type": "local", "base-path": "/a/%2E%2e/b"}, "must not contain"),
        ({"type": "local", "base-path": "/a\x00"}, "control character"),
        ({"type": "local", "base-path": "/a\x7f"}, "control character"),
        ({"type": "local", "base-path": "/" + "ü" * 128}, "too long"),
        ({"type": "local", "base-path": "/a" * 451}, "too long"),
        ({"type": ["local"]}, "this server knows 'adls', 'gcs', 'local'"),
        ({"type": "local", "base-path": "/a", "more": 1}, "profile: more is not a known member"),
    ],
)
def test_a_bad_profile_is_refused_with_its_field(value: Any, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        parse_profile(value)


@pytest.mark.parametrize(("location", "path"), [("file:///a/b", "/a/b"), ("file:/a", "/a"), ("file:///a%41", "/a%41")])
def test_the_path_of_a_location(location: str, path: str) -> None:
    assert local_path(location) == path


@pytest.mark.parametrize(
    "location",
    ["", "/a", "///a", "a", "file:a", "file://a/b", "s3://a", "file:///a/../b", "file:///%2e%2e/b", "file:///\x00"],
)
def test_what_is_no_local_location(location: str) -> None:
    with pytest.raises(StorageError):
        local_path(location)
