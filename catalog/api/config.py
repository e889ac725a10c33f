"""`GET /v1/config`, the first request of every client."""

from uuid import UUID

import msgspec
from django.http import HttpResponse

from catalog.api.wire_types import CatalogConfig
from catalog.identifiers import SEPARATOR
from lakewarden.authz.actions import WarehouseAction
from lakewarden.errors import BadRequest
from lakewarden.http.endpoint import Endpoint
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import json_bytes
from lakewarden.idempotency.outcomes import LIFETIME_ISO
from tenants import access
from tenants.models import User
from tenants.services import users


class ConfigEndpoint(Endpoint):
    """The query parameter `warehouse` is a name in the project of `x-project-id` (else the default project), or
    `<project-id>/<name>`. `signing` is offered for warehouses to whose storage requests are signed.
    """

    def __init__(self, capabilities: list[str], signing: list[str]) -> None:
        self.capabilities = capabilities
        self.signing = signing

    def get(self, request: ApiRequest) -> HttpResponse:
        # the user is registered even if the request is refused, so an administrator can find and authorize them
        users.provision(request.context, seen_by=User.UpdatedWith.CONFIG_CALL)
        project, separator, name = request.query.get("warehouse", "").rpartition("/")
        if not name:
            raise BadRequest("The query parameter `warehouse` is missing: it names the warehouse to connect to")
        if not separator:
            project = access.project_id_of(request.context)
        granted = access.warehouse_named(request.context, name, WarehouseAction.GET_CONFIG, project_id=project)
        offered = [*self.capabilities, *self.signing] if granted.target.profile.signs_requests else self.capabilities
        return json_bytes(config_body(granted.target.id, base_uri=request.base_uri, capabilities=offered))


def config_body(warehouse_id: UUID, *, base_uri: str, capabilities: list[str]) -> bytes:
    """The JSON of a CatalogConfig (spec: getConfig)."""
    return msgspec.json.encode(
        CatalogConfig(
            defaults={},
            overrides={
                "uri": f"{base_uri}/catalog",
                "prefix": str(warehouse_id),
                "namespace-separator": f"%{ord(SEPARATOR):02X}",
            },
            endpoints=capabilities,
            idempotency_key_lifetime=LIFETIME_ISO,
        )
    )
