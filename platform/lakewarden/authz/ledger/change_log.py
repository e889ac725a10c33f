"""The log of what changed in the ledger, for an authorizer outside of the database; grants.py and members.py write it.

It is written only for such a backend, in the transaction of the change, so that a crash leaves both or none. The order
of `sequence` is right for each pair of a principal and an object: who changes it again waits for the first one's
commit, and takes a number only then.
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
"""The relation of a member to a role."""

_followers: list[Callable[[], object]] = []


def are_logged() -> bool:
    """Whether some backend follows the log."""
    return config.current().authorization.by_openfga


def stop_following() -> None:
    """Say that this installation logs nothing any more: every store of OpenFGA has to be reconciled before its use."""
    OpenFgaStore.objects.filter(filled_at__isnull=False).update(filled_at=None)


def follow(apply: Callable[[], object]) -> None:
    """Have `apply` called after each commit of a change in this process; it replaces the one before.

    It may fail with Unavailable: the log keeps what is not applied.
    """
    _followers[:] = [apply]


def announce() -> None:
    """Have the log applied when the open transaction is committed; called with each change."""
    if are_logged():
        transaction.on_commit(_tell)


def _tell() -> None:
    for apply in _followers:
        try:
            apply()
        except (Unavailable, DatabaseError) as error:
            logger.warning("a change of rights is committed, and not applied yet: %s", error)


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
    """As `of_grants`, for rows of authz_membership."""
    # a role's id without `role:`
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
