"""Runs the worker of `lakewarden work`."""

from procrastinate.contrib.django import app
from procrastinate.contrib.django.django_connector import DjangoConnector

# importing it is what makes its tasks known to the worker
from lakewarden.tasks import cleanup  # noqa: F401

CONCURRENCY = 4


def run() -> None:
    """Work until TERM or INT; jobs of workers that died are taken up again by whoever is left."""
    connector = app.connector
    assert isinstance(connector, DjangoConnector)  # noqa: S101 settings install this one
    with app.replace_connector(connector.get_worker_connector()):
        app.run_worker(concurrency=CONCURRENCY, name="lakewarden", delete_jobs="successful")
