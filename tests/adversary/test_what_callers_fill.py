"""Nobody fills a table by asking: what a caller's requests leave behind is gathered, bounded, and goes in time."""

from lakewarden.audit import refusals
from lakewarden.audit.decisions import DECISIONS
from lakewarden.audit.models import AuditEntry
from lakewarden.audit.refusals import PENDING
from tests.integration.catalog.lake import Lake


def _only_what_follows() -> None:
    PENDING.take()
    DECISIONS.take()
    AuditEntry.objects.all().delete()


def test_equal_refusals_are_one_row_with_their_number_and_times(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    _only_what_follows()
    for number in range(300):
        answer = outsider.client.delete(outsider.namespace("sales"), headers={"user-agent": f"agent/{number}"})
        assert answer.status == 404
    refusals.flush()
    (row,) = AuditEntry.objects.filter(outcome="denied")
    assert (row.actor, row.count) == ("oidc~outsider", 300)
    assert row.last_at is not None
    assert row.last_at > row.at


def test_reads_under_ever_new_names_of_programs_are_one_row(lake: Lake, reader: Lake) -> None:
    """Rights: select on `sales.orders`."""
    _only_what_follows()
    for number in range(50):
        assert reader.client.get(reader.table("orders"), headers={"user-agent": f"agent/{number}"}).status == 200
    refusals.flush()
    (row,) = AuditEntry.objects.filter(outcome="allowed")
    assert row.count == 50


def test_refusals_of_everything_at_once_end_in_one_row_that_counts_them(lake: Lake, outsider: Lake) -> None:
    """Rights: create on `outside`."""
    for number in range(110):
        assert lake.create_namespace(f"hidden{number}").status == 200
    _only_what_follows()
    for number in range(110):
        assert outsider.client.get(outsider.namespace(f"hidden{number}")).status == 404
    refusals.flush()
    rows = AuditEntry.objects.filter(actor="oidc~outsider")
    assert (rows.filter(outcome="denied").count(), rows.get(outcome="lost").count) == (100, 10)
