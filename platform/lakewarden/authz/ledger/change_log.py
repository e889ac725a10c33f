"""The log of changes of the ledger, for an authorizer outside of the database; grants.py and members.py write it.

It is written only for such a backend, in the transaction of the change, so a crash leaves both or none. `sequence`
orders the changes of each pair of a principal and an object correctly: a second change waits for the row lock of the
first one, and gets its number only after the first is committed.
"""

import logging
from collections.abc import Callable
from typing import Literal

from django.db import DatabaseError, transaction

from lakewarden import config
from lakewarden.authz.ledger.models import OpenFgaStore
from lakewarden.errors import Unavailable

logger = logging.getLogger(__name__)

ASSIGNEE = "assignee"
"""The relation between a member and a role."""

_followers: list[Callable[[], object]] = []


def are_logged() -> bool:
    """Whether the configured backend needs the log."""
    return config.current().authorization.by_openfga


def stop_following() -> None:
    """Mark all OpenFGA stores as incomplete, because changes are no longer logged: they must
    be reconciled before use.
    """
    OpenFgaStore.objects.filter(filled_at__isnull=False).update(filled_at=None)


def follow(apply: Callable[[], object]) -> None:
    """Register `apply` to be called after each commit of a change in this process; it replaces an earlier one.

    It may raise Unavailable: the log keeps changes that are not applied.
    """
    _followers[:] = [apply]


def announce() -> None:
    """Apply the log after the open transaction is committed; called with each change."""
    if are_logged():
        transaction.on_commit(tell)


def tell() -> None:
    """Apply the log; called after the commit of a change."""
    for apply in _followers:
        try:
            apply()
        except (Unavailable, DatabaseError) as error:
            logger.warning("A change of rights is committed, but not applied yet: %s", error)


def of_grants(operation: Literal["write", "delete"], rows: str) -> str:
    """SQL that logs `rows`, a set of rows of authz_grant, where the parameter `logged` is true."""
    return _INSERT.format(
        operation=operation,
        principal="principal_id",
        relation="privilege",
        kind="object_type",
        id="object_id",
        rows=rows,
    )


def of_memberships(operation: Literal["write", "delete"], rows: str) -> str:
    """Like `of_grants`, for rows of authz_membership."""
    # `substr` removes the prefix `role:`
    return _INSERT.format(
        operation=operation,
        principal="member_id",
        relation=f"'{ASSIGNEE}'",
        kind="'role'",
        id="substr(role_id, 6)",
        rows=rows,
    )


_INSERT = """
    insert into authz_change (operation, principal_id, relation, object_type, object_id)
    select '{operation}', {principal}, {relation}, {kind}, {id} from {rows} where %(logged)s::boolean
"""
