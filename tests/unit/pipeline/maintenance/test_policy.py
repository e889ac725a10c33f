"""Policies: which level counts, what a wrong value is answered with."""

import pytest

from lakewarden.errors import InvalidArgument
from pipeline.maintenance.policy import KIND, PREFIX, Operation, Policy, require_known, resolve


def of(**properties: str) -> dict[str, str]:
    return {PREFIX + name.replace("_", "-"): value for name, value in properties.items()}


def test_tables_of_the_pipeline_are_kept_and_others_are_not() -> None:
    assert resolve({KIND: "changelog"}).is_enabled
    assert not resolve({}).is_enabled
    assert resolve({}, of(enabled="true")).is_enabled
    assert not resolve({KIND: "mirror"} | of(enabled="false"), of(enabled="true")).is_enabled


def test_the_innermost_level_counts() -> None:
    levels = (of(small_files="5"), of(small_files="6", manifests="7"), of(manifests="8", delete_files="9"))
    found = resolve({}, *levels)
    assert (found.small_files, found.manifests, found.delete_files) == (5, 7, 9)
    assert found.max_files == Policy.max_files


def test_icebergs_own_properties_of_the_table_count_too() -> None:
    found = resolve(
        {
            "write.target-file-size-bytes": "1000000",
            "history.expire.max-snapshot-age-ms": "5000",
            "history.expire.min-snapshots-to-keep": "3",
        }
    )
    assert (found.target_bytes, found.small_bytes) == (1_000_000, 750_000)
    assert (found.snapshot_age_ms, found.min_snapshots) == (5000, 3)
    assert (
        resolve({"history.expire.max-snapshot-age-ms": "5000"}, of(snapshot_age_hours="2")).snapshot_age_ms == 7_200_000
    )


def test_operations_run_in_their_own_order() -> None:
    found = resolve(of(operations="expire-snapshots, rewrite-data-files"))
    assert found.operations == (Operation.REWRITE_DATA_FILES, Operation.EXPIRE_SNAPSHOTS)
    assert resolve(of(operations="")).operations == ()


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("enabled", "yes", "must be true or false"),
        ("small_files", "1", "must be a whole number, 2 or more"),
        ("small_files", "many", "must be a whole number"),
        ("small_files", "-5", "must be a whole number"),
        ("small_files", "²", "must be a whole number"),
        ("manifests", "9" * 40, "must be a whole number"),
        ("orphan_age_hours", "23", "24 or more"),
        ("operations", "vacuum", "names 'vacuum'; there are rewrite-data-files, "),
    ],
)
def test_a_wrong_value_is_named_with_what_would_be_right(name: str, value: str, right: str) -> None:
    with pytest.raises(InvalidArgument, match=right) as caught:
        resolve(of(**{name: value}))
    assert PREFIX + name.replace("_", "-") in caught.value.message


def test_names_that_no_policy_has_are_refused_in_the_configuration() -> None:
    require_known(of(enabled="true"), where="policy")
    for wrong in ({"enabled": "true"}, of(small_file="3")):
        with pytest.raises(InvalidArgument, match="is not a property of a policy"):
            require_known(wrong, where="policy")


@pytest.mark.parametrize(
    ("hours", "allowed"),
    [("22-5", {22, 23, 0, 1, 2, 3, 4}), ("0-24", set(range(24))), ("9-11", {9, 10}), ("23-24", {23})],
)
def test_operations_begin_in_some_hours_of_the_day_only(hours: str, allowed: set[int]) -> None:
    policy = resolve({PREFIX + "hours": hours})
    assert {hour for hour in range(24) if policy.allows(86_400 * 20_000 + hour * 3600 + 1800)} == allowed


@pytest.mark.parametrize("hours", ["night", "5", "5-5", "24-3", "3-25", "3-٤"])
def test_hours_that_are_not_valid_are_refused(hours: str) -> None:
    with pytest.raises(InvalidArgument, match="two hours of the day in UTC"):
        resolve({PREFIX + "hours": hours})
