import pytest

from lakewarden.errors import BadRequest, ValidationFailed
from tenants.models.format_policy import FormatVersionPolicy


@pytest.mark.parametrize(
    ("allowed", "default", "expected", "for_new"),
    [
        (None, None, (1, 2, 3), 2),
        ([3, 1, 3], None, (1, 3), 3),
        ([1], None, (1,), 1),
        ([2, 3], 3, (2, 3), 3),
        (None, 1, (1, 2, 3), 1),
    ],
)
def test_a_policy_is_kept_sorted_and_chooses_for_new_tables(
    allowed: list[int] | None, default: int | None, expected: tuple[int, ...], for_new: int
) -> None:
    policy = FormatVersionPolicy.parse(allowed, default)
    assert (policy.allowed, policy.default, policy.for_new_tables) == (expected, default, for_new)


@pytest.mark.parametrize(
    ("allowed", "default", "words"),
    [
        ([], None, "is empty"),
        ([4], None, "4 is not a known version"),
        ([-1, 2], None, "-1 is not a known version"),
        ([1, 2], 3, r"not one of the allowed versions \(1, 2\)"),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(allowed: list[int], default: int | None, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        FormatVersionPolicy.parse(allowed, default)


def test_what_is_not_allowed_is_refused_with_what_is() -> None:
    policy = FormatVersionPolicy.parse([1, 2], None)
    policy.ensure_allowed(2)
    with pytest.raises(ValidationFailed, match="allowed: 1, 2"):
        policy.ensure_allowed(3)
