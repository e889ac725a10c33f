"""A project: one tenant. No query and no privilege reaches from one project into another."""

import re
import time
from typing import Final

from django.db import models

DEFAULT_PROJECT_ID = "00000000-0000-0000-0000-000000000000"
PROJECT_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


def first_epoch() -> int:
    """The authorization epoch of a new project: the current time in microseconds.

    It must be higher than any epoch of an earlier, deleted project with the same id: decisions that a process cached
    for the old project must never be valid for the new one.
    """
    return time.time_ns() // 1000


HELD: Final = "select '{}'::uuid[] from project where id = %s for key share"
"""Keeps one from being deleted until the transaction ends; there are no namespaces above it."""


class Project(models.Model):
    id = models.TextField(primary_key=True)
    name = models.TextField()
    name_key = models.TextField(unique=True)
    authz_epoch = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "project"

    def __str__(self) -> str:
        return self.name
