"""A periodic task that applies logged changes of rights to OpenFGA, if the request that made them could not."""

from django.db import close_old_connections
from procrastinate.contrib.django import app

from lakewarden import backends
from lakewarden.authz.openfga.authorizer import OpenFgaAuthorizer

# the sixth field is seconds
EVERY_5_SECONDS = "* * * * * */5"


@app.periodic(cron=EVERY_5_SECONDS)
@app.task(name="apply_authorization_changes", queue="housekeeping", queueing_lock="apply_authorization_changes")
def apply_authorization_changes(timestamp: int) -> None:  # noqa: ARG001 the scheduler passes when it was due
    """Does nothing with another authorizer. Fails while OpenFGA is not reachable; the next run tries again."""
    close_old_connections()
    authorizer = backends.authorizer()
    if isinstance(authorizer, OpenFgaAuthorizer):
        authorizer.settle()
