"""What workers leave behind when they stop; `doctor` reads it."""

from django.db import models


class WorkerStop(models.Model):
    """The last worker that was told to stop: one row, of id 1."""

    host = models.TextField()
    stopped_at = models.DateTimeField()

    class Meta:
        db_table = "worker_stop"

    def __str__(self) -> str:
        return f"{self.host} at {self.stopped_at}"
