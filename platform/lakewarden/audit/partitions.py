"""The audit's partitions by day. Called by the hourly task."""

from typing import Final

from lakewarden.postgres.daily_partitions import DailyPartitions

PARTITIONS: Final = DailyPartitions(
    "audit_entry",
    columns=(
        "id, at, actor, assumed_role, action, object_type, object_id, project_id, outcome, reason, request_id, "
        "user_agent, count, last_at, details"
    ),
    lock=0x6C6B6175,
)
