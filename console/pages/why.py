"""Who may do something with an object, and why: the grant, the roles it counts through, and what follows from it."""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from django.http import HttpResponse
from django.urls import reverse

from catalog.tabular_types import word_of
from console.pages.rights import object_of, way_to
from console.visits import Visit, page
from lakewarden.authz.actions import ACTIONS, ObjectType, RoleAction
from lakewarden.authz.explanation import Reason
from lakewarden.authz.model import Privilege, wording
from lakewarden.context import ROLE_PREFIX, PrincipalId
from lakewarden.errors import InvalidArgument, LakewardenError
from lakewarden.paging import Page
from permissions import explanations, privileges
from permissions.explanations import Reader
from tenants import access
from tenants.services import principal_names

SHOWN: Final = 50
"""Most holders on a page."""


@page
def why(visit: Visit, *, warehouse_id: UUID, kind: str, object_id: UUID) -> HttpResponse:
    """About `principal` (empty: the visitor) and `action`; others only for whoever may read the grants."""
    granted = object_of(visit, warehouse_id, kind, object_id, reading=False)
    chain, actions = list(granted.chain), {each.value: each for each in ACTIONS[granted.ref.type]}
    name, asked = (
        visit.query.get("action", "get_metadata"),
        visit.query.get("principal", "").replace("\x00", "").strip()[:300],
    )
    if name not in actions:
        raise InvalidArgument(f"Unknown action {name[:80]!r}: {', '.join(sorted(actions))} are known")
    action, reader, may_ask = (
        actions[name],
        Reader(visit.context, chain),
        _may_ask(granted.privileges, granted.ref.type),
    )
    answer, problem = None, None
    try:
        if not asked or asked == visit.context.caller.id:
            answer = explanations.of_caller(visit.context, chain, action)
        else:
            privileges.ensure_may_ask(granted.privileges, granted.ref.type)
            answer = explanations.of_principal(_principal(visit, asked, chain[1].id), chain, action)
    except LakewardenError as error:
        problem = error.message
    holders = explanations.who_may(chain, action, Page(None, SHOWN), expand=True)[0] if may_ask and answer else []
    reasons = [] if answer is None else list(answer.explanation.because)
    every = [*reasons, *(reason for holder in holders for reason in holder.explanation.because)]
    mentioned = {each for reason in every for each in (reason.grant.principal, *reason.through)}
    mentioned |= {PrincipalId(asked)} if answer else set()
    names = principal_names.of(mentioned | {each.principal for each in holders})
    warehouse, way = way_to(granted.target)
    return visit.render(
        "why.html",
        section="warehouses",
        crumbs=way,
        name=str(granted.target),
        word=word_of(granted.ref.type.value),
        rights=reverse("console:rights", args=[warehouse.id, kind, object_id]),
        actions=sorted(actions),
        action=name,
        asked=asked,
        may_ask=may_ask,
        problem=problem,
        answer=answer,
        needs=wording(action),
        chains=[_chain(reason, names, reader, asked or visit.context.caller.id) for reason in reasons],
        holders=[
            (each.principal, names.get(each.principal, ""), _grants(each.explanation.because)) for each in holders
        ],
    )


def _may_ask(held: frozenset[Privilege], kind: ObjectType) -> bool:
    try:
        privileges.ensure_may_ask(held, kind)
    except LakewardenError:
        return False
    return True


def _principal(visit: Visit, asked: str, project_id: str) -> PrincipalId:
    if not asked.startswith(ROLE_PREFIX):
        return PrincipalId(asked)
    role = access.role(visit.context, asked.removeprefix(ROLE_PREFIX), RoleAction.READ_METADATA, project_id=project_id)
    return role.target.principal


def _chain(reason: Reason, names: Mapping[PrincipalId, str], reader: Reader, start: str) -> list[tuple[str, str, str]]:
    """The steps as (kind, title, detail), from the principal to the privilege on the object."""
    given = reason.grant
    steps = [("who", names.get(PrincipalId(start), start), "")]
    steps += [("role", names.get(each, str(each)), "member of the role") for each in reason.through]
    by = f"granted by {given.granted_by}" if reader.may_read(given.ref) else "granted"
    steps.append(("grant", given.privilege.value, f"{by} on the {word_of(given.ref.type.value)}"))
    steps += [("then", step.privilege.value, f"so also on the {word_of(step.ref.type.value)}") for step in reason.then]
    return steps


def _grants(because: tuple[Reason, ...]) -> str:
    given = [each.grant for each in because]
    return ", ".join(sorted({f"{each.privilege} on the {word_of(each.ref.type.value)}" for each in given}))
