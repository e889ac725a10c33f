"""uuid, format version, location, properties and encryption keys."""

import pytest

from lakewarden.errors import BadRequest, ImmutableProperty, InvalidArgument
from tests.unit.iceberg.documents import LOCATION, OTHER_UUID, UUID, Document, commit, create, document, ref, snapshot


def key(key_id: str, **members: object) -> Document:
    found = {"key-id": key_id, "encrypted-key-metadata": "c2VjcmV0", **members}
    return {"action": "add-encryption-key", "encryption-key": found}


def upgrade(version: int) -> Document:
    return {"action": "upgrade-format-version", "format-version": version}


def test_assign_uuid_ignores_its_own_and_never_sets_another() -> None:
    base = create()
    for same in (UUID, UUID.upper()):
        assert commit(base, {"action": "assign-uuid", "uuid": same}) is base
    with pytest.raises(InvalidArgument, match=f"Cannot reassign uuid: it is {UUID}"):
        commit(base, {"action": "assign-uuid", "uuid": OTHER_UUID})
    with pytest.raises(InvalidArgument, match="Invalid uuid: nope"):
        commit(base, {"action": "assign-uuid", "uuid": "nope"})


def test_upgrade_from_v1_drops_the_old_spellings_and_starts_sequence_numbers() -> None:
    made = document(commit(create(1), upgrade(2)))
    assert not {"schema", "partition-spec"} & made.keys()
    assert made["last-sequence-number"] == 0


def test_upgrade_to_v3_starts_row_ids() -> None:
    made = document(commit(create(1), upgrade(3)))
    assert (made["next-row-id"], made["last-sequence-number"], made["current-snapshot-id"]) == (0, 0, None)


def test_upgrade_of_v1_keeps_its_snapshots() -> None:
    plain = snapshot(1)
    del plain["sequence-number"]
    base = commit(create(1), {"action": "add-snapshot", "snapshot": plain}, ref(1))
    assert document(commit(base, upgrade(2)))["snapshots"] == [plain]


def test_upgrade_to_the_same_version_changes_nothing() -> None:
    base = create()
    assert commit(base, upgrade(2)) is base


def test_downgrades_and_unknown_versions_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="Cannot downgrade v2 table to v1"):
        commit(create(), upgrade(1))
    with pytest.raises(InvalidArgument, match="Cannot upgrade table to unsupported format version: v4"):
        commit(create(), upgrade(4))


def test_set_location_strips_slashes_and_ignores_its_own() -> None:
    base = create()
    assert commit(base, {"action": "set-location", "location": f"{LOCATION}//"}) is base
    assert commit(base, {"action": "set-location", "location": "s3://other/"}).location == "s3://other"
    assert commit(base, {"action": "set-location", "location": "file:///"}).location == "file://"
    with pytest.raises(InvalidArgument, match="Invalid location"):
        commit(base, {"action": "set-location", "location": ""})


@pytest.mark.parametrize("name", ["updates", "updated"])
def test_set_properties_adds_and_replaces(name: str) -> None:
    base = create(properties={"a": "1", "b": "2"})
    made = commit(base, {"action": "set-properties", name: {"b": "3", "c": "4"}})
    assert made.properties.items() >= {"a": "1", "b": "3", "c": "4"}.items()


@pytest.mark.parametrize("name", ["removals", "removed"])
def test_remove_properties_ignores_what_is_not_there(name: str) -> None:
    made = commit(create(properties={"a": "1"}), {"action": "remove-properties", name: ["a", "z"]})
    assert "a" not in made.properties


def test_no_properties_to_set_or_remove_changes_nothing() -> None:
    base = create()
    assert commit(base, {"action": "set-properties", "updates": {}}) is base
    assert commit(base, {"action": "remove-properties", "removals": []}) is base


def test_properties_must_be_there_and_be_texts() -> None:
    with pytest.raises(BadRequest, match=r"updates\[0\] \(set-properties\): .*`updates`"):
        commit(create(), {"action": "set-properties"})
    with pytest.raises(BadRequest, match=r"updates\[0\] \(remove-properties\): .*`removals`"):
        commit(create(), {"action": "remove-properties"})
    with pytest.raises(BadRequest, match="Expected `str`, got `null`"):
        commit(create(), {"action": "set-properties", "updates": {"a": None}})


def test_encryption_keys_are_added_once_and_removed() -> None:
    base = commit(create(3), key("k1", x=1), key("k2"))
    assert [each["key-id"] for each in document(base)["encryption-keys"]] == ["k1", "k2"]
    assert document(base)["encryption-keys"][0]["x"] == 1
    assert commit(base, key("k1", **{"encrypted-by-id": "other"})) is base
    made = commit(base, {"action": "remove-encryption-key", "key-id": "k1"})
    assert [each["key-id"] for each in document(made)["encryption-keys"]] == ["k2"]


def test_removing_an_encryption_key_that_is_not_there_changes_nothing() -> None:
    base = create(3)
    assert commit(base, {"action": "remove-encryption-key", "key-id": "k1"}) is base
    assert "encryption-keys" not in document(commit(base, key("k"), {"action": "remove-encryption-key", "key-id": "k"}))


def test_key_metadata_must_be_base64() -> None:
    with pytest.raises(BadRequest, match="encrypted-key-metadata"):
        commit(create(3), key("k", **{"encrypted-key-metadata": "?"}))


def test_the_encryption_key_stays_once_it_is_set() -> None:
    base = create()
    keyed = commit(base, {"action": "set-properties", "updates": {"encryption.key-id": "k1"}})
    same = commit(keyed, {"action": "set-properties", "updates": {"encryption.key-id": "k1", "a": "b"}})
    assert same.properties["encryption.key-id"] == "k1"
    for update in (
        {"action": "set-properties", "updates": {"encryption.key-id": "k2"}},
        {"action": "set-properties", "updated": {"encryption.key-id": ""}},
        {"action": "remove-properties", "removals": ["a", "encryption.key-id"]},
        {"action": "remove-properties", "removed": ["encryption.key-id"]},
    ):
        with pytest.raises(ImmutableProperty, match="is 'k1' and cannot be"):
            commit(keyed, update)
    assert commit(base, {"action": "remove-properties", "removals": ["encryption.key-id"]}) is not keyed
