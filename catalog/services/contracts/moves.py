"""Tables and views that come to another place: what they are must be allowed by the contracts that apply only there."""

from copy import copy
from typing import Final

from catalog.iceberg.tables import TableMetadata
from catalog.iceberg.views import ViewMetadata
from catalog.models import Namespace, Tabular
from catalog.services import pointer
from catalog.services.contracts import effective, gate, verifiers
from catalog.services.contracts.combined import Combined
from catalog.services.contracts.documents import Verifier
from catalog.services.contracts.judging import judge
from catalog.services.contracts.proposals import Metadata, Proposal
from lakewarden import config
from lakewarden.context import RequestContext
from lakewarden.errors import Conflict

_KINDS: Final = (Tabular.Kind.TABLE, Tabular.Kind.VIEW)


def check_tabular(tabular: Tabular, destination: Namespace, name: str, context: RequestContext) -> None:
    """Raises ContractViolated if it may not be in the namespace `destination`, Unavailable as verifiers do.

    Raises Conflict if the contracts there contradict its own. Called outside of transactions.
    """
    if not destination.warehouse.contracts or tabular.kind not in _KINDS:
        return
    moved = _at(tabular, destination, name)
    here, there = effective.of_tabular(tabular), effective.of_tabular(moved)
    if there is None:
        return
    proposal = _check(tabular, moved, here, there, context)
    if gained := _gained(here, there):
        asked = [each for each in there.verifiers if each[0] in gained]
        if violations := verifiers.ask(proposal, asked):
            raise gate.refusal(proposal, violations)


def check_namespace(namespace: Namespace, above: Namespace | None, path: list[str], context: RequestContext) -> None:
    """Raises as `check_tabular`, for all that is in the namespace, or below it, if it gets the path below `above`.

    Raises Conflict if verifiers would have to be asked, or more objects be checked than
    `contracts.max_checked_on_move`. Part of the transaction that moves it, in which nothing is created in it.
    """
    effective.refresh(namespace.warehouse)
    if not namespace.warehouse.contracts:
        return
    most = config.current().contracts.max_checked_on_move
    within = Tabular.objects.filter(namespace__lineage__contains=[namespace.id], kind__in=_KINDS)
    for number, tabular in enumerate(within.placed().order_by("id")[: most + 1]):
        if number == most:
            raise Conflict(
                f"Cannot move {namespace}: more than {most} tables and views in it would have to be checked for data "
                "contracts (contracts.max_checked_on_move): move what is in it in parts"
            )
        tabular.namespace.warehouse = namespace.warehouse
        moved = _at(tabular, _below(tabular.namespace, namespace, above, path), tabular.name)
        here, there = effective.of_tabular(tabular), effective.of_tabular(moved)
        if there is None:
            continue
        if gained := _gained(here, there):
            names = ", ".join(sorted(each.name for each in gained))
            raise Conflict(
                f"Cannot move {namespace}: the data contracts at its new place have the verifier {names}, which is "
                "asked about one table or view at a time: move what is in it one by one"
            )
        _check(tabular, moved, here, there, context)


def _check(
    tabular: Tabular, moved: Tabular, here: Combined | None, there: Combined, context: RequestContext
) -> Proposal:
    known = set(here.contradictions) if here else set()
    if contradictions := [each for each in there.contradictions if each not in known]:
        raise Conflict(
            f"Cannot move {tabular} to {moved.namespace}: the data contracts there contradict others: "
            f"{contradictions[0]}"
        )
    stored = pointer.newest(tabular).metadata
    is_view = tabular.kind == Tabular.Kind.VIEW
    metadata: Metadata = ViewMetadata.decode(stored) if is_view else TableMetadata.decode(stored)
    proposal = Proposal("rename", gate.about_tabular(moved), None, metadata, context)
    definition = metadata.definition
    old = {each[:3] for each in judge(None, definition, here)} if here else set()
    if violations := [each for each in judge(None, definition, there) if each[:3] not in old]:
        raise gate.refusal(proposal, violations)
    return proposal


def _gained(here: Combined | None, there: Combined) -> set[Verifier]:
    known = {verifier for verifier, _ in here.verifiers} if here else set()
    return {verifier for verifier, _ in there.verifiers} - known


def _at(tabular: Tabular, namespace: Namespace, name: str) -> Tabular:
    moved = copy(tabular)
    moved.namespace, moved.name = namespace, name
    return moved


def _below(at: Namespace, moved: Namespace, above: Namespace | None, path: list[str]) -> Namespace:
    """The namespace `at` as it will be when `moved`, around it, has its new place."""
    there, depth = copy(at), len(moved.path)
    there.path = [*path, *at.path[depth:]]
    there.lineage = [*(above.lineage if above else ()), *at.lineage[depth - 1 :]]
    return there
