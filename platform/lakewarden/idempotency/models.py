"""The outcomes of requests with an `Idempotency-Key`, written in the transaction of the change."""

from django.db import models


class IdempotencyRecord(models.Model):
    principal_id = models.TextField()
    key = models.UUIDField()
    fingerprint = models.TextField(help_text="Of method, path and body: a key belongs to one request.")
    attempt = models.UUIDField(help_text="The execution that wrote this.")
    object_type = models.TextField(default="")
    object_id = models.TextField(default="")
    data = models.JSONField(default=dict)
    refusal_status = models.IntegerField(null=True, help_text="When a repeated request would be refused again.")
    refusal_body = models.TextField(default="")
    answer_status = models.SmallIntegerField(null=True, help_text="Of an answer that cannot be made from the state.")
    answer_body = models.TextField(default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "idempotency_record"
        constraints = [models.UniqueConstraint(fields=["principal_id", "key"], name="idempotency_key_unique")]
        indexes = [models.Index(fields=["created_at"], name="idempotency_created")]

    def __str__(self) -> str:
        return str(self.key)
