"""Settings of the database connections of servers and workers."""

from pydantic import Field, SecretStr

from lakewarden.config.sections import Names, Section


class SessionTimeouts(Section):
    """Time-outs of a database session, in seconds; servers and workers have different ones."""

    lock_timeout_s: float
    statement_timeout_s: float
    idle_in_transaction_timeout_s: float
    transaction_timeout_s: float | None


class DatabaseConfig(SessionTimeouts):
    url: SecretStr | None = Field(None, description="postgresql://user:password@host:port/database")
    connect_timeout_s: int = Field(10, ge=1, description="Seconds to wait for a connection.")
    start_wait_s: float = Field(
        60,
        ge=0,
        le=86400,
        description="Seconds for which `lakewarden serve` and `lakewarden work` wait at their start for a database "
        "that cannot be reached. 0: they end at once.",
    )
    lock_timeout_s: float = Field(
        5,
        gt=0,
        le=3600,
        description="Seconds for which a request waits for a lock that another holds; then nothing is changed, and the "
        "answer is 503 with Retry-After.",
    )
    statement_timeout_s: float = Field(
        30,
        gt=0,
        le=3600,
        description="Seconds that a statement of a request may take; the connection is closed if the "
        "database does not answer for 3 more seconds.",
    )
    idle_in_transaction_timeout_s: float = Field(
        15,
        gt=0,
        le=3600,
        description="Seconds after which the database ends a transaction that sends no statements, so "
        "that a server that is frozen or gone does not keep its locks.",
    )
    transaction_timeout_s: float = Field(
        120, gt=0, le=86400, description="Seconds that a transaction of a request may take (PostgreSQL 17 and later)."
    )
    keepalive_idle_s: int = Field(
        10,
        ge=1,
        le=7200,
        description="Seconds of silence after which each end of a connection probes the other (TCP keepalive).",
    )
    keepalive_interval_s: int = Field(5, ge=1, le=3600, description="Seconds between two such probes.")
    keepalive_count: int = Field(3, ge=1, le=100, description="Probes without an answer that end a connection.")
    tcp_user_timeout_s: int = Field(
        20, ge=1, le=3600, description="Seconds for which sent data may stay unacknowledged (`TCP_USER_TIMEOUT`)."
    )


class WorkerConfig(SessionTimeouts):
    """Settings of `lakewarden work`, for each process."""

    tasks_at_once: int = Field(4, ge=1, le=64, description="Tasks that a worker runs at the same time.")
    queues: Names = Field(
        (),
        description="Queues that a worker takes tasks from, separated by commas; empty: all. Each queue needs at least "
        "one "
        "worker: `tabular_purge`, `soft_deletion`, `task_log_cleanup`, `housekeeping`.",
    )
    give_up_after_s: int = Field(
        0,
        ge=0,
        description="Seconds without a database after which a worker ends with exit code 1; 0: it never gives up.",
    )
    lock_timeout_s: float = Field(30, gt=0, le=86400, description="As `database.lock_timeout_s`, for a worker.")
    statement_timeout_s: float = Field(
        600, gt=0, le=86400, description="As `database.statement_timeout_s`, for a worker."
    )
    idle_in_transaction_timeout_s: float = Field(
        60, gt=0, le=86400, description="As `database.idle_in_transaction_timeout_s`, for a worker."
    )
    transaction_timeout_s: float | None = Field(
        None,
        gt=0,
        le=86400,
        description="As `database.transaction_timeout_s`, for a worker; without it there is no limit.",
    )
