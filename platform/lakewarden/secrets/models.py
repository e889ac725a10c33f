"""Secrets in the database, unreadable without the keys, which are not in it; and the name of this installation."""

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


class Installation(models.Model):
    """One row: what tells this database's secrets from those of others in the same Vault."""

    is_this = models.BooleanField(primary_key=True, default=True)
    id = models.UUIDField()

    class Meta:
        db_table = "installation"
        constraints = [models.CheckConstraint(condition=models.Q(is_this=True), name="installation_is_one")]

    def __str__(self) -> str:
        return str(self.id)
