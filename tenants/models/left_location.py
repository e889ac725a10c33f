"""Where a warehouse that is gone, or lies elsewhere now, has left files."""

from django.db import models
from django.utils import timezone


class LeftLocation(models.Model):
    """`location` is written with links followed; the project need not be there any more."""

    location = models.TextField(primary_key=True)
    project_id = models.TextField()
    left_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "left_location"

    def __str__(self) -> str:
        return self.location
