"""A soak of a minute or two: every kind of fault once, so that the lane cannot rot; `make soak` is the long one."""

import tempfile
from pathlib import Path

from tests.soak.faults import KINDS
from tests.soak.run import Options, soak


def test_nothing_is_lost_doubled_or_wrong_by_any_fault() -> None:
    # not below pytest's own folder, which root's database, running as another user, could not enter
    with tempfile.TemporaryDirectory(prefix="lw-soak-") as directory:
        report = soak(Options(operations=500, faults=len(KINDS), is_quiet=True), Path(directory))
    assert report.is_good, report.as_text()
    assert report.totals["checked"] > 500
    assert report.totals["times"] == len(KINDS)
