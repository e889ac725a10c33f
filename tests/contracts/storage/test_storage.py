"""What every storage must do, whatever it is made of."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientRoutes
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import (
    FileMissing,
    FileTaken,
    OutOfReach,
    Storage,
    StorageError,
)
from lakewarden.storage.places import overlap
from lakewarden.storage.probe import Probe
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.profiles import PROFILES, parse_profile
from lakewarden.storage.removal import Found
from tests.contracts.storage import clouds
from tests.contracts.storage.bucket import OBJECTS, BucketProfile
from tests.contracts.storage.clouds import azurite, fake_gcs
from tests.servers.minio import minio
from tests.servers.s3_server import REGION, S3Server
from tests.servers.versitygw import versitygw

__all__ = ["azurite", "fake_gcs", "minio", "versitygw"]


@dataclass(frozen=True)
class Kind:
    """A storage to test: profiles of the same place, of another place, and spellings of the location `base/a b/c`."""

    profile: StorageProfile
    same_place: StorageProfile
    elsewhere: StorageProfile
    nowhere: StorageProfile
    """Of a place that is not there."""
    spellings: tuple[str, ...]
    foreign: tuple[str, ...]
    credential: StorageCredential | None = None


def directory(request: pytest.FixtureRequest) -> Kind:
    tmp_path: Path = request.getfixturevalue("tmp_path")
    base = tmp_path / "lake"
    base.mkdir()
    (tmp_path / "link").symlink_to(base)

    def at(path: Path) -> StorageProfile:
        return parse_profile({"type": "local", "base-path": str(path)})

    spellings = (f"file://{base}/a b/c", f"file:{base}/a b/c", f"file://{base}/a b/c/")
    foreign = (str(base), "s3://lake/a", f"file://{base}/../x", "file://host/a", "", "lake")
    elsewhere = at(tmp_path / "lake2")
    return Kind(at(base), at(tmp_path / "link"), elsewhere, at(tmp_path / "none"), spellings, foreign)


def bucket(_: pytest.FixtureRequest) -> Kind:
    def at(bucket: str, endpoint: str) -> StorageProfile:
        return parse_profile({"type": "bucket", "bucket": bucket, "key-prefix": "lake", "endpoint": endpoint})

    spellings = ("bucket://one/lake/a b/c", "bucketa://one/lake/a b/c", "bucket://one/lake/a b/c/")
    foreign = ("s3://one/lake", "file:///lake", "bucket://one/lake/../x", "", "lake")
    one = "http://one"
    return Kind(at("one", one), at("one", "http://two"), at("other", one), at("none", one), spellings, foreign)


def s3(server: S3Server, **more: Any) -> Kind:
    name, other = server.new_bucket(), server.new_bucket()

    def at(bucket: str, **changes: Any) -> StorageProfile:
        fields = {"type": "s3", "bucket": bucket, "key-prefix": "lake", "region": REGION, "endpoint": server.endpoint}
        flavor = {"flavor": "s3-compat", "path-style-access": True, "sts-enabled": False}
        return parse_profile(fields | flavor | {"allow-alternative-protocols": True} | more | changes)

    spellings = (f"s3://{name}/lake/a b/c", f"s3a://{name}/lake/a b/c", f"S3n://{name}/lake/a b/c/")
    foreign = (f"gs://{name}/lake", "file:///lake", f"s3://{name}/lake/../x", f"s3://{name}/lake//x", "", "lake")
    profile, same_place = at(name), at(name, endpoint="http://127.0.0.1:1")
    credential = profile.parse_credential(
        {
            "credential-type": "access-key",
            "access-key-id": server.root.access_key_id,
            "secret-access-key": server.root.secret_access_key,
        }
    )
    return Kind(profile, same_place, at(other), at("lw-is-not-there"), spellings, foreign, credential)


KINDS: dict[str, Callable[[pytest.FixtureRequest], Kind]] = {
    "local": directory,
    "bucket": bucket,
    "s3": lambda request: s3(request.getfixturevalue("minio")),
    "s3 of versitygw": lambda request: s3(request.getfixturevalue("versitygw")),
    "s3 with versions": lambda request: s3(request.getfixturevalue("minio"), **{"delete-old-versions": True}),
    "adls": lambda request: Kind(**clouds.adls(request)),
    "gcs": lambda request: Kind(**clouds.gcs(request)),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    monkeypatch.setitem(PROFILES, "bucket", BucketProfile)
    yield KINDS[request.param](request)
    OBJECTS.clear()


@pytest.fixture
def store(kind: Kind) -> Storage:
    return kind.profile.open(kind.credential)


@pytest.fixture
def base(kind: Kind) -> str:
    return kind.profile.location


def test_every_known_storage_passes_this_suite() -> None:
    assert PROFILES.keys() <= KINDS.keys()


def test_a_profile_is_what_it_was_when_it_is_read_again(kind: Kind) -> None:
    assert parse_profile(kind.profile.dump()) == kind.profile
    assert set(kind.profile.PLACE_FIELDS) <= kind.profile.dump().keys()


def test_each_spelling_of_a_location_has_the_same_normal_form(kind: Kind, base: str) -> None:
    assert {kind.profile.normal(each) for each in kind.spellings} == {f"{base}/a b/c"}
    assert kind.profile.normal(base) == base
    assert kind.profile.normal(f"{base}/a b/c") == f"{base}/a b/c"


def test_what_is_not_a_location_of_the_storage_is_refused(kind: Kind) -> None:
    for location in kind.foreign:
        with pytest.raises(StorageError):
            kind.profile.normal(location)


def test_profiles_of_one_place_overlap_and_others_do_not(kind: Kind) -> None:
    assert overlap(kind.profile.real_location, kind.same_place.real_location)
    assert not overlap(kind.profile.real_location, kind.elsewhere.real_location)
    assert kind.profile.field_moved_by(kind.profile) is None
    assert kind.profile.field_moved_by(kind.elsewhere) in kind.profile.PLACE_FIELDS


def test_a_file_is_written_once_and_read_by_each_spelling(kind: Kind, store: Storage) -> None:
    store.write_new(kind.spellings[0], b"content")
    assert {store.read(each.rstrip("/"), limit=7) for each in kind.spellings} == {b"content"}
    for each in kind.spellings:
        with pytest.raises(FileTaken):
            store.write_new(each.rstrip("/"), b"other")
    assert store.read(kind.spellings[0], limit=7) == b"content"
    with pytest.raises(StorageError, match="larger than 6 bytes"):
        store.read(kind.spellings[0], limit=6)


def test_a_file_that_is_deleted_is_missing(store: Storage, base: str) -> None:
    store.write_new(f"{base}/t/f", b"")
    store.delete(f"{base}/t/f")
    store.delete(f"{base}/t/f")
    with pytest.raises(FileMissing):
        store.read(f"{base}/t/f", limit=1)


def test_a_file_is_never_said_to_be_missing_while_it_is_there(kind: Kind, store: Storage, base: str) -> None:
    store.write_new(f"{base}/t/f", b"")
    assert not store.is_known_missing(f"{base}/t/f")
    assert store.is_known_missing(f"{base}/t/g") is kind.profile.SEES_MISSING_FILES


USES: list[Callable[[Storage, str], Any]] = [
    lambda store, location: store.write_new(location, b"x"),
    lambda store, location: store.read(location, limit=1),
    lambda store, location: store.delete(location),
    lambda store, location: store.is_empty(location),
]


@pytest.mark.parametrize("use", USES, ids=["write", "read", "delete", "look"])
def test_nothing_outside_the_profile_is_reached(kind: Kind, store: Storage, use: Callable[[Storage, str], Any]) -> None:
    with pytest.raises(OutOfReach):
        use(store, f"{kind.elsewhere.location}/f")


def test_a_place_is_empty_until_a_file_is_below_it(store: Storage, base: str) -> None:
    assert store.is_empty(f"{base}/t")
    store.write_new(f"{base}/t2/f", b"")
    assert store.is_empty(f"{base}/t")
    store.write_new(f"{base}/t/a/f", b"")
    assert not store.is_empty(f"{base}/t")
    assert store.is_empty(f"{base}/t", since=datetime.now(UTC) - timedelta(hours=1))
    assert not store.is_empty(f"{base}/t", since=datetime.now(UTC) + timedelta(hours=1))


def removed(store: Storage, location: str, within: str) -> list[Found]:
    found = list(store.survey(location, within=within))
    outcome = store.remove(found, within=within, at_once=2)
    assert outcome.error is None
    return outcome.gone


def test_a_removal_takes_all_below_a_place_and_nothing_beside_it(store: Storage, base: str) -> None:
    beside = [f"{base}/ns/t2/f", f"{base}/ns/t.x", f"{base}/ns/T/f", f"{base}/other/t/f"]
    for each in [f"{base}/ns/t/f", f"{base}/ns/t/a/b/f", *beside]:
        store.write_new(each, b"rows")
    gone = removed(store, f"{base}/ns/t", f"{base}/ns")
    assert {(each.path, each.size) for each in gone if not each.is_folder} == {("t/f", 4), ("t/a/b/f", 4)}
    assert store.is_empty(f"{base}/ns/t")
    assert [store.read(each, limit=4) for each in beside] == [b"rows"] * len(beside)


def test_the_folders_in_a_place_are_named_once_and_nothing_beside_or_below_them(store: Storage, base: str) -> None:
    for path in ("a/b/c/1", "a/b/2", "a/d e/ü%20/3", "a/file", "ab/x/4"):
        store.write_new(f"{base}/{path}", b"1")
    assert sorted(store.folders(f"{base}/a")) == ["b", "d e"]
    assert list(store.folders(f"{base}/a/d e")) == ["ü%20"]
    assert sorted(store.folders(base)) == ["a", "ab"]
    assert list(store.folders(f"{base}/a/b/c")) == list(store.folders(f"{base}/nothing")) == []


def test_the_folders_of_a_foreign_place_are_not_told(kind: Kind, store: Storage) -> None:
    for location in kind.foreign:
        with pytest.raises(StorageError):
            list(store.folders(location))


def test_more_folders_than_a_page_are_all_named(store: Storage, base: str) -> None:
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda number: store.write_new(f"{base}/many/{number}/x", b""), range(1100)))
    assert sorted(map(int, store.folders(f"{base}/many"))) == list(range(1100))


def test_what_was_replaced_after_it_was_found_stays(store: Storage, base: str) -> None:
    for name in ("kept", "gone"):
        store.write_new(f"{base}/t/{name}", b"rows")
    found = list(store.survey(f"{base}/t", within=base))
    store.delete(f"{base}/t/kept")
    store.write_new(f"{base}/t/kept", b"others")
    outcome = store.remove(found, within=base, at_once=1)
    assert [each.path for each in outcome.gone if not each.is_folder] == ["t/gone"]
    assert store.read(f"{base}/t/kept", limit=6) == b"others"


def test_what_is_gone_by_itself_counts_as_missing(store: Storage, base: str) -> None:
    store.write_new(f"{base}/t/f", b"")
    found = [each for each in store.survey(f"{base}/t", within=base) if not each.is_folder]
    store.delete(f"{base}/t/f")
    outcome = store.remove(found, within=base, at_once=1)
    assert (outcome.gone, outcome.missing) == ([], found)


@pytest.mark.parametrize("place", ["{base}", "{base}/ns", "{base}/other"])
def test_the_place_that_stays_and_what_is_around_it_is_never_surveyed(store: Storage, base: str, place: str) -> None:
    for name in ("ns/f", "other/f"):
        store.write_new(f"{base}/{name}", b"")
    with pytest.raises(StorageError, match="never deleted"):
        list(store.survey(place.format(base=base), within=f"{base}/ns"))


def test_a_storage_whose_place_is_missing_is_noticed(kind: Kind, store: Storage, base: str) -> None:
    with pytest.raises(StorageError):
        kind.nowhere.open(kind.credential).ensure_there()
    store.write_new(f"{base}/f", b"")
    store.ensure_there()


def test_a_probe_leaves_nothing(store: Storage, base: str) -> None:
    probe = Probe(store, f"{base}/new/place")
    probe.write_and_read()
    assert not store.is_empty(f"{base}/new")
    probe.clean_up(folders=True)
    assert store.is_empty(base)


def test_a_folder_that_is_made_counts_as_empty_and_is_taken_away_again(store: Storage, base: str) -> None:
    for _ in range(2):
        store.make_folder(f"{base}/new/place")
    assert store.is_empty(base)
    store.write_new(f"{base}/new/place/f", b"")
    store.remove_empty(f"{base}/new/place", inside=base)
    assert store.read(f"{base}/new/place/f", limit=1) == b""
    with pytest.raises(OutOfReach):
        store.make_folder(f"{base}-beside/place")


def test_engines_are_told_what_they_need_apart_by_table_and_level(kind: Kind, store: Storage, base: str) -> None:
    routes = ClientRoutes("http://catalog", "v1/credentials", "v1/sign")
    asked = [AccessRequest(f"{base}/{name}", level, frozenset(), routes) for name in "ab" for level in AccessLevel]
    told = [{**found.config, **found.credentials} for found in map(store.client_access, asked)]
    if kind.profile.type == "s3":
        assert all(each["s3.region"] == REGION for each in told)
    elif kind.profile.CLIENTS_NEED_CONFIG:
        assert len({tuple(sorted(each.items())) for each in told}) == len(told)
    else:
        assert not any(told)
