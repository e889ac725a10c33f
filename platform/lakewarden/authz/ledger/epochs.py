"""Raises the authorization epoch of projects, which invalidates cached decisions; the ledger does it in each change.

The project's row is locked before the rows of its grants (see `lakewarden.db_transaction`), and the rows of several
projects in the order of their ids. Otherwise two changes could deadlock.
"""

from collections.abc import Collection, Mapping
from typing import Final, Literal

from lakewarden.prepared_statements import fetch


def raise_in(project_ids: Collection[str | None]) -> None:
    """Invalidate all cached decisions of the projects; None among them stands for the server: of all projects."""
    if project_ids:
        fetch(_RAISE, {"everywhere": None in project_ids, "projects": [each for each in project_ids if each]})


def raise_where(
    table: Literal["authz_grant", "authz_membership"], condition: str, parameters: Mapping[str, object]
) -> set[str | None]:
    """Like `raise_in`, for the projects of the matching rows, which the caller deletes next; returns these projects."""
    found = {project_id for (project_id,) in fetch(_CONCERNED.format(table=table, condition=condition), parameters)}
    raise_in(found)
    return found


def raised_in(projects: str) -> str:
    """SQL that raises the epochs of `projects`, a query of their ids, in a statement that has HELD in its `with`."""
    return f"update project set authz_epoch = authz_epoch + 1 where id in ({projects})"  # noqa: S608 text of our own


HELD: Final = """
    projects as materialized (
        select p.id, p.authz_epoch from project p where p.id in (select project_id from {rows})
        order by p.id for no key update of p
    )
"""
"""SQL for a statement that changes grants: locks the projects of `rows`, and reads their newest epochs.

If a row's decision was made at this epoch, the statement sees all grants that there are: each change of one raises it.
"""
_CONCERNED = "select distinct project_id from {table} where {condition}"
_RAISE = """
    with held as materialized (
        select id from project where %(everywhere)s::boolean or id = any(%(projects)s::text[])
        order by id for no key update
    )
    update project p set authz_epoch = authz_epoch + 1 from held h where p.id = h.id returning p.id
"""
