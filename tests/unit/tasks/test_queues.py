"""What can be set for a queue, and what its tasks say when they are cancelled."""

from typing import Any

import pytest

from lakewarden.errors import BadRequest
from lakewarden.tasks import queues
from lakewarden.tasks.queues import PURGE, QUEUES


@pytest.mark.parametrize("given", [{}, {"deletions-at-once": 1}, {"deletions-at-once": 64, "max-attempts": 16}])
def test_what_a_purge_can_be_set_to(given: dict[str, Any]) -> None:
    assert QUEUES[PURGE].check(given) == given


@pytest.mark.parametrize("value", [0, 65, -1, 1.0, "4", True, None, [4]])
def test_how_many_deletions_at_once_cannot_be(value: object) -> None:
    with pytest.raises(BadRequest, match=r"deletions-at-once is .* from 1 to 64 is expected"):
        QUEUES[PURGE].check({"deletions-at-once": value})


def test_only_a_cancelled_purge_says_that_files_stay() -> None:
    assert queues.cancelled(PURGE) == "Cancelled on request: files that were not removed by then stay"
    assert {queues.cancelled(name) for name in ("task_log_cleanup", "unknown")} == {"Cancelled on request"}
