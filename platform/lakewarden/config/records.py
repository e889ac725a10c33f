"""What is kept of requests and changes, and what is logged."""

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


class EventsConfig(Section):
    """The outbox: events of changes, kept until they are delivered, and for a while where nobody asks for them."""

    retention_days: int = Field(
        7, ge=1, le=36500, description="Days for which events are kept after every enabled sink has received them."
    )
    max_rows: int = Field(
        1_000_000,
        ge=1000,
        description="Most such events that are kept; beyond it the oldest go before their time.",
    )


class IdempotencyConfig(Section):
    """What is remembered by `Idempotency-Key`. Changes are always: with the change itself, for 35 minutes."""

    refusals_per_hour: int = Field(
        1000,
        ge=0,
        description="Refusals (400, 406, 409, 422) of one caller's authorized requests that are remembered in an hour; "
        "beyond it, a repeated request is evaluated again.",
    )
    max_answer_bytes: int = Field(
        16 * 1024,
        ge=1024,
        description="Largest answer of the management API that is remembered; a request with a larger one is never "
        "carried out twice either, but its answer cannot be repeated.",
    )


class AuditConfig(Section):
    """What is kept of who did what. Changes are always recorded, with the change itself."""

    decisions: Literal["all", "denied", "none"] = Field(
        "all",
        description="Which decisions on requests are recorded beside the changes: `all`, only what was `denied` "
        "(bad credentials too), or `none`.",
    )
    retention_days: int = Field(
        90, ge=1, le=36500, description="Days for which the audit is kept; older days are dropped whole."
    )
    window_s: int = Field(
        10,
        ge=1,
        le=300,
        description="Seconds for which equal refusals of a caller (without credentials: of an address) are gathered "
        "into one entry with their number. A server that is killed loses those of this time.",
    )
    groups: int = Field(
        10_000,
        ge=100,
        description="Most different refusals, and as many decisions, that wait in memory to be written; more are only "
        "counted, in an entry that says so.",
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
