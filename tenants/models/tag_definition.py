"""A tag definition: one word of a project's vocabulary, which says where its tag may be set and with which values."""

from typing import Final

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models.project import Project

HELD: Final = "select '{}'::uuid[] from tag_definition where id = %s::text::uuid for key share"
"""Keeps one from being deleted until the transaction ends; there are no namespaces above it."""
DEFINITION: Final = "tag_definition d on d.id"
"""To be joined by the statements of other apps."""


class Scope(models.TextChoices):
    """The types of objects that a tag may be set on."""

    WAREHOUSE = "warehouse"
    NAMESPACE = "namespace"
    TABLE = "table"
    VIEW = "view"
    GENERIC_TABLE = "generic-table"
    COLUMN = "column"


class ValueKind(models.TextChoices):
    """`marker`: the tag has no value; `free-text`: any text; `enumerated`: one of the definition's allowed values."""

    MARKER = "marker"
    FREE_TEXT = "free-text"
    ENUMERATED = "enumerated"


class TagDefinition(models.Model):
    id = models.UUIDField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.PROTECT)
    name = models.TextField()
    name_key = models.TextField()
    description = models.TextField(null=True)  # noqa: DJ001 the API tells unknown from empty
    scope = ArrayField(models.TextField())
    value_kind = models.TextField(choices=ValueKind.choices)
    allowed_values = ArrayField(models.TextField(), null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "tag_definition"
        constraints = [
            models.UniqueConstraint(fields=["project", "name_key"], name="tag_definition_name_unique"),
            models.CheckConstraint(
                condition=models.Q(value_kind="enumerated", allowed_values__isnull=False)
                | models.Q(value_kind__in=["marker", "free-text"], allowed_values__isnull=True),
                name="tag_definition_values_only_if_enumerated",
            ),
        ]

    def __str__(self) -> str:
        return self.name
