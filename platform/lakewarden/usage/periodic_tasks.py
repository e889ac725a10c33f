"""The hourly task of `lakewarden work` that removes old counts and budgets; `apps` registers it."""

from django.db import close_old_connections
from procrastinate.contrib.django import app

from lakewarden import config
from lakewarden.retention import forget


@app.periodic(cron="31 * * * *")
@app.task(name="forget_usage", queue="housekeeping", queueing_lock="forget_usage", pass_context=False)
def forget_usage(timestamp: int) -> int:  # noqa: ARG001 the scheduler passes when it was due
    """Removes counts and budgets after their retention (`usage.retention_days`); returns how many."""
    close_old_connections()
    days = {"days": config.current().usage.retention_days}
    old = "< now() - make_interval(days => %(days)s)"
    return forget("endpoint_calls", first="hour", expired=f"hour {old}", parameters=days) + forget(
        "spending", first="period", expired=f"period {old}", parameters=days
    )
