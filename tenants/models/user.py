"""Users: people and programs that have called the server or that an administrator registered.

Only name, email and type are stored. Identity providers keep everything else.
"""

from django.db import models


class User(models.Model):
    class Type(models.TextChoices):
        HUMAN = "human"
        APPLICATION = "application"

    class UpdatedWith(models.TextChoices):
        CREATE_ENDPOINT = "create-endpoint"
        CONFIG_CALL = "config-call-creation"
        UPDATE_ENDPOINT = "update-endpoint"

    id = models.TextField(primary_key=True)
    name = models.TextField()
    email = models.TextField(null=True)  # noqa: DJ001 the API tells unknown from empty
    user_type = models.TextField(choices=Type.choices)
    last_updated_with = models.TextField(choices=UpdatedWith.choices)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "lakewarden_user"

    def __str__(self) -> str:
        return self.id
