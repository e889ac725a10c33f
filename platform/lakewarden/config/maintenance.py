"""Settings of `lakewarden maintenance`: where it logs in, and the policies of warehouses."""

from typing import Annotated

from pydantic import Field

from lakewarden.config.sections import EngineSection, JsonObject, Properties


class MaintenanceConfig(EngineSection):
    """Maintenance is a client of the catalog: it needs an OAuth2 client that may read and write the tables."""

    policy: Properties = Field(
        default_factory=dict,
        description="Default policy of all warehouses, as JSON of the properties that tables and namespaces can have: "
        '`{"lakewarden.maintenance.small-files": "50"}`.',
    )
    warehouse_policies: Annotated[dict[str, Properties], JsonObject] = Field(
        default_factory=dict,
        description='Policies of single warehouses, as JSON: `{"<project>/<name>": {…}}`, or by the name alone.',
    )
    history_days: int = Field(90, ge=1, le=3650, description="Days for which it is kept what maintenance did.")
