"""The server's identity: a single row, whose id never changes."""

from typing import Self

from django.db import models

from lakewarden.ids import new_id


class Server(models.Model):
    id = models.UUIDField(primary_key=True)
    singleton = models.BooleanField(default=True, unique=True)
    bootstrapped_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "server"
        constraints = [models.CheckConstraint(condition=models.Q(singleton=True), name="server_is_one")]

    def __str__(self) -> str:
        return str(self.id)

    @classmethod
    def this(cls) -> Self:
        """The row, created at the first call: a server has its id before it is bootstrapped."""
        server, _ = cls.objects.get_or_create(singleton=True, defaults={"id": new_id()})
        return server
