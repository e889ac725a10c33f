"""Settings of what is recorded: usage, idempotency, audit, log."""

from typing import Literal

from pydantic import Field

from lakewarden.config.sections import Section


class UsageConfig(Section):
    flush_interval_s: int = Field(
        30, ge=1, le=3600, description="Seconds after which the counts of calls are written to the database."
    )
    retention_days: int = Field(
        90, ge=1, le=36500, description="Days for which the hourly counts of calls (`endpoint-statistics`) are kept."
    )


class IdempotencyConfig(Section):
    """What is stored for an `Idempotency-Key`. A change is always stored, for 35 minutes, in its own transaction."""

    refusals_per_hour: int = Field(
        1000,
        ge=0,
        description="Refusals (400, 406, 409, 422) of authorized requests that are stored for one caller in an hour; "
        "beyond that, a repeated request is evaluated again.",
    )
    max_answer_bytes: int = Field(
        16 * 1024,
        ge=1024,
        description="Largest response of the management API that is stored. A request with a larger response is not "
        "executed twice either, but its response cannot be repeated.",
    )


class AuditConfig(Section):
    """What the audit records. Changes are always recorded, in their own transaction."""

    decisions: Literal["all", "denied", "none"] = Field(
        "all",
        description="Which decisions are recorded in addition to changes: `all`, only `denied` ones (including invalid "
        "credentials), or `none`.",
    )
    retention_days: int = Field(
        90, ge=1, le=36500, description="Days for which the audit is kept; it is removed by whole days."
    )
    window_s: int = Field(
        10,
        ge=1,
        le=300,
        description="Seconds in which equal refusals of a caller (without credentials: of an address) are combined "
        "into one entry with a count. A server that is killed loses the refusals of this time.",
    )
    groups: int = Field(
        10_000,
        ge=100,
        description="Most different refusals, and as many allowed decisions, that wait in memory to be written; "
        "further "
        "ones are only counted, in an entry with the outcome `lost`.",
    )
    refusals_of_one_caller: int = Field(
        100,
        ge=1,
        description="Most different refusals of one caller in `window_s` that get an entry each; more are "
        "only counted.",
    )
    decisions_of_one_caller: int = Field(
        1000,
        ge=1,
        description="Most different decisions on one caller's requests in a second that get an entry each; more are "
        "only counted.",
    )


class LogConfig(Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least severe level that is logged."
    )
    format: Literal["text", "json"] = Field(
        "text", description="`text`: lines for people; `json`: one object a line, with the request's id as a member."
    )
