"""`POST` of a commit to a table."""

from typing import Final

from catalog import hot_access
from catalog.api.hot.call import asked
from catalog.api.hot.write import HotWrite, WriteCall, answered, decoded
from catalog.api.rendering import COMMIT_SUFFIX
from catalog.services import tables
from catalog.services.commit_writer.writer import commit
from catalog.services.contracts import effective
from catalog.services.tables import CommitTable
from catalog.tabular_types import TABLE
from lakewarden.authz.actions import TableAction
from lakewarden.hot.coalescer import NotAnswered
from lakewarden.hot.routes import Answer


async def _commit(call: WriteCall) -> Answer | None:
    body = decoded(call, CommitTable, may_be_large=True)
    if body is None or tables.is_creation(body.requirements):
        return None
    granted = await asked(hot_access.tabular(call.context, *call.key, kind=TABLE, action=TableAction.COMMIT))
    if granted is None:
        return None
    try:
        rules = await effective.found(granted.target.namespace, granted.target)
    except NotAnswered:
        return None
    done = await commit(tables.prepared(granted, body, rules=rules))
    return None if done is None else await answered(call, done, suffix=COMMIT_SUFFIX)


COMMIT: Final = HotWrite(_commit)
