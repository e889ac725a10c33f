"""Who holds what on a warehouse: `GET` and `POST /warehouse/{id}/grants`."""

import re
from collections.abc import Mapping
from typing import Any

from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import ObjectType, WarehouseAction
from lakewarden.authz.model import GRANTABLE, Privilege
from lakewarden.context import PrincipalId
from lakewarden.errors import BadRequest
from management.api import ManagementView
from management.shapes import Body
from tenants import access
from tenants.services import grants
from tenants.services.grants import GrantEntry

_USER_ID = re.compile(r"[a-z0-9-]+~.{1,255}")
_PRIVILEGES = sorted(GRANTABLE[ObjectType.WAREHOUSE])
_NO_PRIVILEGE = f"{{input!r}} is not a privilege on warehouses: one of {', '.join(_PRIVILEGES)}"


class EntryBody(serializers.Serializer[Any]):
    privilege = serializers.ChoiceField(choices=_PRIVILEGES, error_messages={"invalid_choice": _NO_PRIVILEGE})
    principal = serializers.DictField()


class GrantsBody(Body):
    writes = EntryBody(many=True, default=list)
    deletes = EntryBody(many=True, default=list)


class WarehouseGrants(ManagementView):
    def get(self, _request: Request, warehouse_id: str) -> Response:
        """All direct grants, by principal and privilege."""
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.READ_GRANTS)
        return Response({"grants": [_plain(entry) for entry in grants.on_warehouse(granted)]})

    def post(self, _request: Request, warehouse_id: str) -> Response:
        """Apply a difference of at most 100 entries, all or none; doing it again changes nothing."""
        body = self.body(GrantsBody)
        writes, deletes = (_entries(body, side) for side in ("writes", "deletes"))
        granted = access.warehouse(self.context, warehouse_id, WarehouseAction.MANAGE_GRANTS)
        grants.apply_to_warehouse(granted, writes=writes, deletes=deletes)
        return Response(status=204)


def _plain(entry: GrantEntry) -> dict[str, Any]:
    return {"privilege": entry.privilege.value, "principal": {"user": entry.principal}}


def _entries(body: GrantsBody, side: str) -> list[GrantEntry]:
    return [
        GrantEntry(_principal(entry["principal"], where=f"{side}[{index}]"), Privilege(entry["privilege"]))
        for index, entry in enumerate(body.get(side))
    ]


def _principal(value: Mapping[str, Any], *, where: str) -> PrincipalId:
    """A user of the tagged union `{"user": id}` or `{"role": id}`."""
    if "role" in value:
        raise BadRequest(f"{where}.principal: roles are not served by this server yet; name a user")
    user = value.get("user")
    if set(value) != {"user"} or not isinstance(user, str) or not _USER_ID.fullmatch(user) or not user.isprintable():
        raise BadRequest(f'{where}.principal: {dict(value)!r} is not {{"user": "<provider>~<subject>"}}')
    return PrincipalId(user)


routes = [
    path("warehouse/<str:warehouse_id>/grants", WarehouseGrants.as_view()),
]
