"""Grants: `…/grants` of all objects, the list of privileges, and the grants of a principal."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, cast

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from lakewarden.authz.actions import TABULAR_TYPES, ObjectType, ProjectAction
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger.grants import Given
from lakewarden.authz.model import DESCRIPTIONS, GRANTABLE, Privilege
from lakewarden.context import ROLE_PREFIX, PrincipalId, role_principal
from lakewarden.errors import BadRequest
from lakewarden.paging import Page
from management import identities
from management.actions import SOMEBODY
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.grantable import GRANTABLES, TAG_DEFINITION, Grantable
from management.pagination import PAGE_PARAMETERS, token_of
from permissions import grants, others
from permissions.grants import GrantEntry
from permissions.privileges import NamedPrincipal
from tenants import access


@extend_schema_field(identities.SCHEMA)
class PrincipalField(serializers.DictField):
    """The tagged union `{"user": id}` or `{"role": id}`."""


class EntryBody(serializers.Serializer[Any]):
    privilege = serializers.CharField()
    principal = PrincipalField()


class GrantsBody(Body):
    writes = EntryBody(many=True, default=list)
    deletes = EntryBody(many=True, default=list)


class ResourceShape(Shape):
    """The object of a grant: its type, its id, and the id of its warehouse if it is in one."""

    type = serializers.ChoiceField(choices=[kind.value for kind in ObjectType])
    project_id = serializers.CharField(required=False)
    role_id = serializers.CharField(required=False)
    warehouse_id = serializers.CharField(required=False)
    namespace_id = serializers.CharField(required=False)
    table_id = serializers.CharField(required=False)
    view_id = serializers.CharField(required=False)
    generic_table_id = serializers.CharField(required=False)
    tag_definition_id = serializers.CharField(required=False)


class GrantShape(Shape):
    resource = ResourceShape()
    privilege = serializers.CharField()
    principal = PrincipalField()
    recognized = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class GrantsShape(Shape):
    grants = GrantShape(many=True)
    next_page_token = serializers.CharField(required=False)


class PrivilegeShape(Shape):
    name = serializers.CharField()
    display_name = serializers.CharField()
    description = serializers.CharField()
    category = serializers.CharField()
    resource_type = serializers.CharField()


class PrivilegesShape(Shape):
    privileges = serializers.DictField(child=serializers.ListField(child=PrivilegeShape()))


class GrantablePrivilegeShape(Shape):
    privilege = PrivilegeShape()
    allowed = serializers.BooleanField()


class GrantablePrivilegesShape(Shape):
    privileges = GrantablePrivilegeShape(many=True)


class HeldGrantShape(GrantShape):
    resource_type = serializers.CharField()
    resource_id = serializers.CharField()


class HeldGrantsShape(Shape):
    grants = HeldGrantShape(many=True)
    next_page_token = serializers.CharField(required=False)


PRINCIPAL_PARAMETERS = [
    OpenApiParameter("principalUser", str, description="Only the grants of this user."),
    OpenApiParameter("principalRole", str, description="Only the grants of this role."),
]
_IN_WAREHOUSE = {ObjectType.NAMESPACE, *TABULAR_TYPES}


class ObjectGrants(ManagementView):
    """The grants on one type of object."""

    kind = cast("Grantable", None)

    @extend_schema(parameters=[*PRINCIPAL_PARAMETERS, *PAGE_PARAMETERS], responses={200: GrantsShape})
    def get(self, _request: Request, **parts: str) -> Response:
        """List the direct grants on the object, by principal and privilege.

        Callers who ask for their own grants only need the right to see the object.
        """
        asked = identities.of_query(self.call.query)
        page = self.page
        own = asked is not None and asked.user == self.context.caller.id
        granted = (self.kind.seen if own else self.kind.read)(self.context, parts)
        wanted = _principal(asked) if asked else None
        keyed = [
            (entry, f"{entry.principal} {entry.privilege}")
            for entry in grants.on(granted)
            if wanted in {None, entry.principal}
        ]
        return Response(GrantsShape.of(_paged(page, keyed)))

    @extend_schema(request=GrantsBody, responses={204: None})
    def post(self, _request: Request, **parts: str) -> Response:
        """Grant and revoke privileges on the object, at most 100 in one request.

        Either all changes are made or none; repeating the request changes nothing.
        """
        body = self.body(GrantsBody)
        writes, deletes = (_entries(body, side, self.kind.type) for side in ("writes", "deletes"))
        granted = self.kind.seen(self.context, parts)
        note_foreign_roles(granted, writes)
        grants.apply(granted, writes=writes, deletes=deletes)
        return Response(status=204)


class ObjectGrantablePrivileges(ManagementView):
    """The privileges that the caller may grant on one type of object."""

    kind = cast("Grantable", None)

    @extend_schema(parameters=SOMEBODY, responses={200: GrantablePrivilegesShape})
    def get(self, _request: Request, **parts: str) -> Response:
        """List the privileges that exist on the object, and whether the caller may grant them.

        `principalUser` or `principalRole` asks about another principal.
        """
        kind, identity = self.kind.type, identities.of_query(self.call.query)
        held = others.held_on(self.kind.seen(self.context, parts), identity)
        privileges = [
            {"privilege": _described(each, kind), "allowed": allowed}
            for each, allowed in grants.grantable(kind, held).items()
        ]
        return Response(GrantablePrivilegesShape.of({"privileges": privileges}))


class Vocabulary(ManagementView):
    @extend_schema(responses={200: PrivilegesShape})
    def get(self, _request: Request) -> Response:
        """List and describe all privileges, by the type of object."""
        body = {kind.value: [_described(each, kind) for each in sorted(found)] for kind, found in GRANTABLE.items()}
        return Response(PrivilegesShape.of({"privileges": body}))


class HeldGrants(ManagementView):
    @extend_schema(parameters=[*PRINCIPAL_PARAMETERS, *PAGE_PARAMETERS], responses={200: HeldGrantsShape})
    def get(self, _request: Request) -> Response:
        """List the direct grants of a principal in the project.

        Without `principalUser` and `principalRole` the principal is the caller.
        """
        asked = identities.of_query(self.call.query) or NamedPrincipal(user=self.context.caller.id)
        page = self.page
        own = asked.user == self.context.caller.id
        action = ProjectAction.GET_METADATA if own else ProjectAction.READ_GRANTS
        granted = access.project(self.context, self.project_id, action)
        keyed = [
            (entry, f"{entry.ref.type.value} {entry.ref.public_id} {entry.privilege}")
            for entry in grants.of(granted, _principal(asked))
        ]
        return Response(HeldGrantsShape.of(_paged(page, keyed)))


def note_foreign_roles(granted: Granted[object], entries: Iterable[GrantEntry]) -> None:
    """Note roles of other projects for the audit, before the service answers that they do not exist."""
    if len(granted.chain) > 1:
        principals = (entry.principal for entry in entries)
        access.note_foreign_roles(granted.context, principals, project_id=granted.chain[1].id)


def plain_principal(principal: PrincipalId) -> dict[str, str]:
    if principal.startswith(ROLE_PREFIX):
        return {"role": principal.removeprefix(ROLE_PREFIX)}
    return {"user": principal}


def _paged(page: Page, keyed: list[tuple[Given, str]]) -> dict[str, Any]:
    following = sorted((pair for pair in keyed if pair[1] > (page.after or "")), key=itemgetter(1))
    shown, last = page.cut(following[: page.limit])
    return {"grants": [_plain(entry) for entry in shown], "next_page_token": token_of(last)}


def _plain(entry: Given) -> dict[str, Any]:
    kind, identifier = entry.ref.type, entry.ref.public_id
    resource = {"type": kind.value}
    if kind is not ObjectType.SERVER:
        resource[f"{kind.replace('-', '_')}_id"] = identifier
    if kind in _IN_WAREHOUSE:
        resource["warehouse_id"] = entry.above[1]  # after the project
    return {
        "resource": resource,
        "resource_type": kind.value,
        "resource_id": identifier,
        "privilege": entry.privilege.value,
        "principal": plain_principal(entry.principal),
        "recognized": entry.privilege in GRANTABLE[kind],
        "created_at": entry.at,
    }


def _described(privilege: Privilege, kind: ObjectType) -> dict[str, str]:
    return {
        "name": privilege.value,
        "display_name": privilege.value.replace("_", " ").capitalize(),
        "description": DESCRIPTIONS[privilege].text,
        "category": DESCRIPTIONS[privilege].category,
        "resource_type": kind.value,
    }


def _entries(body: GrantsBody, side: str, kind: ObjectType) -> list[GrantEntry]:
    return [
        GrantEntry(
            named_principal(entry["principal"], where=f"{side}[{index}].principal"),
            named_privilege(entry["privilege"], kind, where=f"{side}[{index}].privilege"),
        )
        for index, entry in enumerate(body.get(side))
    ]


def named_privilege(name: str, kind: ObjectType, *, where: str) -> Privilege:
    known = sorted(GRANTABLE[kind])
    if name not in known:
        raise BadRequest(f"{where}: {name[:80]!r} is not a privilege on a {kind.value}: one of {', '.join(known)}")
    return Privilege(name)


def named_principal(value: object, *, where: str) -> PrincipalId:
    """The principal that `{"user": id}` or `{"role": id}` names."""
    identity = identities.of_body(value, where=where)
    if identity is None:
        raise BadRequest(f'{where}: {{"user": "<provider>~<subject>"}} or {{"role": "<id>"}} is expected')
    return _principal(identity)


def _principal(identity: NamedPrincipal) -> PrincipalId:
    return identity.user or role_principal(identity.role)


routes = [
    path("grants", HeldGrants.as_view()),
    path("grants/grantable-privileges", Vocabulary.as_view()),
    *(
        route
        for kind in (*GRANTABLES, TAG_DEFINITION)
        for route in (
            path(f"{kind.path}/grants", ObjectGrants.as_view(kind=kind)),
            path(f"{kind.path}/grants/grantable-privileges", ObjectGrantablePrivileges.as_view(kind=kind)),
        )
    ),
]
