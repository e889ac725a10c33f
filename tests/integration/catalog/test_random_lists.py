"""Filtered lists, on random trees with random rights, show exactly what follows from looking at every grant."""

import random
from uuid import UUID

import pytest

from catalog.models import Namespace, Tabular
from lakewarden.authz.ledger.models import Grant
from lakewarden.authz.ledger.visible_objects import SHOWING, SHOWING_BELOW
from lakewarden.context import PrincipalId
from lakewarden.ids import new_id
from tenants.models import Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID

ALICE, ROLE, BOB = PrincipalId("oidc~alice"), PrincipalId("role:readers"), PrincipalId("oidc~bob")
ASKED = ([ALICE, ROLE], [BOB], [ALICE], [PrincipalId("oidc~nobody")])


def _namespace(warehouse: Warehouse, parent: Namespace | None, name: str) -> Namespace:
    identifier = new_id()
    path = [*(parent.path if parent else []), name]
    return Namespace.objects.create(
        id=identifier,
        warehouse=warehouse,
        parent=parent,
        path=path,
        path_key="\x1f".join(path),
        name_key=name,
        lineage=[*(parent.lineage if parent else []), identifier],
    )


def _table(namespace: Namespace, name: str) -> Tabular:
    identifier = new_id()
    return Tabular.objects.create(
        id=identifier,
        warehouse=namespace.warehouse,
        namespace=namespace,
        kind="table",
        name=name,
        name_key=name,
        uuid=identifier,
        location=f"file:///{identifier}",
        metadata_location="file:///m",
    )


def _grant(principal: PrincipalId, target: Warehouse | Namespace | Tabular, privilege: str) -> None:
    if isinstance(target, Warehouse):
        kind, above = "warehouse", []
    elif isinstance(target, Namespace):
        kind, above = "namespace", [target.warehouse_id, *target.lineage[:-1]]
    else:
        kind, above = "table", [target.warehouse_id, *target.namespace.lineage]
    Grant.objects.get_or_create(
        principal_id=principal,
        object_type=kind,
        object_id=str(target.id),
        privilege=privilege,
        project_id=DEFAULT_PROJECT_ID,
        ancestors=[DEFAULT_PROJECT_ID, *map(str, above)],
        granted_by=BOB,
    )


def _has_any(principals: list[PrincipalId], identifier: UUID) -> bool:
    """Whether one of them has a right on the object or on anything in it."""
    return any(
        str(identifier) in {grant.object_id, *grant.ancestors}
        for grant in Grant.objects.filter(principal_id__in=principals)
    )


def _sees(principals: list[PrincipalId], space: Namespace) -> bool:
    """By a right on it or in it, or by one on what it lies in that is passed on to all below."""
    above = Grant.objects.filter(principal_id__in=principals, object_id__in=[str(each) for each in space.lineage])
    return _has_any(principals, space.id) or any(grant.privilege in SHOWING_BELOW for grant in above)


def _describes(principals: list[PrincipalId], table: Tabular) -> bool:
    found = Grant.objects.filter(principal_id__in=principals, object_id=str(table.id))
    return any(grant.privilege in SHOWING["table"] for grant in found)


def _check(principals: list[PrincipalId], warehouses: list[Warehouse], spaces: list[Namespace]) -> int:
    """Compare every list of every object; returns how much was shown."""
    shown = 0
    for place in warehouses:
        for parent in [None, *(each for each in spaces if each.warehouse_id == place.id)]:
            rows = Namespace.objects.filter(warehouse=place, parent=parent).order_by("name_key")
            listed = Namespace.objects.listed(
                place.id, parent.id if parent else None, after="", limit=1000, shown_to=principals
            )
            assert [each.id for each, _ in listed] == [row.id for row in rows if _has_any(principals, row.id)]
            shown += len(listed)
        every = Namespace.objects.of_all_levels(place.id, after="", limit=None, shown_to=principals)
        rows = Namespace.objects.filter(warehouse=place).order_by("path_key")
        assert [path for path, _ in every] == [row.path for row in rows if _sees(principals, row)]
    for space in spaces:
        mine = Tabular.objects.filter(namespace=space).order_by("name_key")
        found = Tabular.objects.listed(space.id, "table", after="", limit=1000, shown_to=principals)
        assert [each.id for each, _ in found] == [row.uuid for row in mine if _describes(principals, row)]
        shown += len(found)
    seen = Warehouse.objects.all().shown_to(principals, project_id=DEFAULT_PROJECT_ID)
    assert {each.id for each in seen} == {each.id for each in warehouses if _has_any(principals, each.id)}
    return shown


@pytest.mark.parametrize("seed", range(6))
def test_lists_show_what_single_grants_say(warehouse: Warehouse, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 no secret
    other = Warehouse.objects.get(id=warehouse.id)
    other.id, other.name, other.name_key, other.location = new_id(), "other", "other", "file:///other"
    other.save(force_insert=True)
    spaces: list[Namespace] = []
    for number in range(14):
        place = draw.choice([warehouse, other])
        parents = [None, *(each for each in spaces if each.warehouse_id == place.id)]
        spaces.append(_namespace(place, draw.choice(parents), f"n{number}"))
    tables = [_table(draw.choice(spaces), f"t{number}") for number in range(30)]
    everything: list[Warehouse | Namespace | Tabular] = [warehouse, other, *spaces, *tables]
    for target in draw.sample(everything, 20):
        privilege = draw.choice(["select", "describe", "ownership", "pass_grants"])
        _grant(draw.choice([ALICE, ROLE, BOB]), target, privilege)
    shown = [_check(principals, [warehouse, other], spaces) for principals in ASKED]
    assert shown[0] > 0
    assert shown[-1] == 0
