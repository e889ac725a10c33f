"""Runs the worker of `lakewarden work`."""

from procrastinate.contrib.django import app
from procrastinate.contrib.django.django_connector import DjangoConnector

from lakewarden import config

# importing it is what makes its tasks known to the worker
from lakewarden.tasks import cleanup  # noqa: F401
from lakewarden.tasks.held_jobs import HeldJobs


def run() -> None:
    """Work until TERM or INT; jobs of workers that died are taken up again by whoever is left."""
    connector = app.connector
    assert isinstance(connector, DjangoConnector)  # noqa: S101 settings install this one
    settings = config.current().worker
    with app.replace_connector(connector.get_worker_connector()) as running:
        running.job_manager = HeldJobs(running.connector)
        running.run_worker(
            concurrency=settings.tasks_at_once,
            queues=settings.queues or None,
            name="lakewarden",
            delete_jobs="successful",
        )
