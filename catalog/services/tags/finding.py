"""The part of a search that keeps only tables and views with a tag."""

from dataclasses import dataclass
from typing import Final

from lakewarden.authz.interface import Granted
from tenants.models import TagDefinition


@dataclass(frozen=True, slots=True)
class Tagged:
    """With this tag, set or inherited or on a column; `value` None: with any value."""

    tag: Granted[TagDefinition]
    value: str | None

    @property
    def parameters(self) -> dict[str, object]:
        return {"definition": self.tag.target.id, "tag_value": self.value}


_HERE = "from tag_attachment a where a.definition_id = %(definition)s and a.warehouse_id = %(in)s"
# of a tag that is set more than once around a table, the nearest value counts
TAGGED: Final = f"""
    tagged as materialized (
        select c.id from (
            select a.tabular_id as id {_HERE} and a.tabular_id is not null
            union
            select t.id from (select a.namespace_id {_HERE}) a
            join namespace n on n.warehouse_id = %(in)s and a.namespace_id = any(n.lineage)
            join tabular t on t.namespace_id = n.id
            union
            select t.id from tabular t
            where t.warehouse_id = %(in)s and exists (select {_HERE} and a.target_type = 'warehouse')
        ) c join tabular t on t.id = c.id join namespace n on n.id = t.namespace_id
        where %(tag_value)s::text is null
            or exists (select {_HERE} and a.tabular_id = c.id and a.field_id is not null and a.value = %(tag_value)s)
            or %(tag_value)s = (
                select a.value {_HERE} and a.field_id is null
                    and (a.tabular_id = c.id or a.namespace_id = any(n.lineage) or a.target_type = 'warehouse')
                order by a.tabular_id nulls last, array_position(n.lineage, a.namespace_id) desc nulls last limit 1)
    ),
"""  # noqa: S608 text of our own
"""A member of a query's `with`: the ids of those in the warehouse `in`."""
