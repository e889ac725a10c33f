"""Sessions of people who are signed in to the console."""

from django.db import models
from django.utils import timezone


class ConsoleSession(models.Model):
    """`id` is a digest of the value of the browser's cookie, and `tokens` can be decrypted with that value only: who
    reads the table can neither use a session nor learn its tokens.
    """

    id = models.BinaryField(primary_key=True)
    principal = models.TextField()
    tokens = models.BinaryField()
    refresh_at = models.DateTimeField(help_text="When the access token must be replaced.")
    created_at = models.DateTimeField(default=timezone.now)
    used_at = models.DateTimeField(default=timezone.now)
    project_id = models.TextField(default="", help_text="The project that was chosen; empty: the default one.")
    role_id = models.UUIDField(null=True, help_text="The role that was assumed.")

    class Meta:
        db_table = "console_session"
        indexes = [
            models.Index(fields=["principal", "created_at"], name="console_session_of"),
            models.Index(fields=["created_at"], name="console_session_age"),
        ]

    def __str__(self) -> str:
        return self.principal
