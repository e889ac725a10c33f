"""Secrets in the database: unreadable without the keys, which are not in it."""

from django.db import models
from django.utils import timezone


class Secret(models.Model):
    """`ciphertext` is of AES-256-GCM with its tag at the end; `secrets.key_ring` says what it is bound to."""

    id = models.UUIDField(primary_key=True)
    key_id = models.TextField()
    nonce = models.BinaryField()
    ciphertext = models.BinaryField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "secret"
        indexes = [models.Index(fields=["key_id", "id"], name="secret_key")]

    def __str__(self) -> str:
        return str(self.id)
