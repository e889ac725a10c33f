"""Tells OpenFGA what requests have left in the log of changes: a task of the worker, every few seconds."""

from django.db import close_old_connections
from procrastinate.contrib.django import app

from lakewarden import backends
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer

# a sixth field is the second
EVERY_5_SECONDS = "* * * * * */5"


@app.periodic(cron=EVERY_5_SECONDS)
@app.task(name="apply_authorization_changes", queue="housekeeping", queueing_lock="apply_authorization_changes")
def apply_authorization_changes(timestamp: int) -> None:  # noqa: ARG001 the scheduler passes when it was due
    """With another authorizer there is nothing to do. Fails while OpenFGA is away, and is tried again."""
    close_old_connections()
    authorizer = backends.authorizer()
    if isinstance(authorizer, OpenFgaAuthorizer):
        authorizer.settle()
