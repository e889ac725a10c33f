"""Settings of `lakewarden maintenance`: where it logs in, and the policies of warehouses."""

import json
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr

from lakewarden.config.sections import HttpUri, Section


def _object(value: object) -> object:
    """Accept JSON, because environment variables have no objects, and the names of properties have dots."""
    return json.loads(value) if isinstance(value, str) else value


Properties = Annotated[dict[str, str], BeforeValidator(_object)]


class MaintenanceConfig(Section):
    """Maintenance is a client of the catalog: it needs an OAuth2 client that may read and write the tables."""

    catalog_uri: HttpUri | None = Field(
        None,
        description="Address of the catalog for maintenance, without `/v1`, e.g. https://lake.example.org/catalog.",
    )
    oauth2_server_uri: HttpUri | None = Field(
        None, description="Token endpoint at which maintenance logs in with client credentials."
    )
    client_id: str | None = Field(None, description="Its OAuth2 client.")
    client_secret: SecretStr | None = Field(None, description="The secret of its OAuth2 client.")
    scope: str = Field("catalog", description="Scope that it asks for.")
    policy: Properties = Field(
        default_factory=dict,
        description="Default policy of all warehouses, as JSON of the properties that tables and namespaces can have: "
        '`{"lakewarden.maintenance.small-files": "50"}`.',
    )
    warehouse_policies: Annotated[dict[str, Properties], BeforeValidator(_object)] = Field(
        default_factory=dict,
        description='Policies of single warehouses, as JSON: `{"<project>/<name>": {…}}`, or by the name alone.',
    )
    history_days: int = Field(90, ge=1, le=3650, description="Days for which it is kept what maintenance did.")
