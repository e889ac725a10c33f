"""Locations where a deleted or relocated warehouse may have left files (ADR 0016)."""

from django.db import models
from django.utils import timezone


class LeftLocation(models.Model):
    """`location` is the real path (symbolic links resolved); the project may have been deleted since."""

    location = models.TextField(primary_key=True)
    project_id = models.TextField()
    left_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "left_location"

    def __str__(self) -> str:
        return self.location
