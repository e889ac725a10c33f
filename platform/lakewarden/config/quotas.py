"""Settings of quotas: how many objects there may be."""

from pydantic import Field

from lakewarden.config.sections import Section


class QuotasConfig(Section):
    """Most objects of a type; 0: no limit. Dropped objects count until they are removed permanently."""

    projects: int = Field(10_000, ge=0, description="Most projects of the server.")
    warehouses_in_project: int = Field(1000, ge=0, description="Most warehouses of a project.")
    roles_in_project: int = Field(10_000, ge=0, description="Most roles of a project.")
    tag_definitions_in_project: int = Field(10_000, ge=0, description="Most tag definitions of a project.")
    members_of_role: int = Field(100_000, ge=0, description="Most direct members of a role.")
    grants_on_object: int = Field(10_000, ge=0, description="Most grants on one object.")
    tags_on_object: int = Field(
        5000, ge=0, description="Most tags on one object; the tags of a table's columns count as the table's."
    )
    namespaces_in_warehouse: int = Field(200_000, ge=0, description="Most namespaces of a warehouse, on all levels.")
    tables_in_namespace: int = Field(
        2_000_000, ge=0, description="Most tables, views and generic tables of a namespace."
    )
    tables_in_warehouse: int = Field(
        10_000_000, ge=0, description="Most tables, views and generic tables of a warehouse."
    )
