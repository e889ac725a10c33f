"""`POST /v1/{prefix}/transactions/commit`: commits to several tables at once."""

import msgspec
from django.http import HttpResponse

from catalog import access
from catalog.api.idempotent_replay import CatalogMutation
from catalog.api.tables import table_ref
from catalog.api.wire_types import Identifier
from catalog.services import commit_limits, multi_table_commit, tables
from catalog.services.multi_table_commit import TableCommit, TableCreation
from catalog.services.tables import CommitTable
from lakewarden.authz.actions import NamespaceAction, TableAction
from lakewarden.errors import BadRequest
from lakewarden.http.request import ApiRequest
from lakewarden.http.responses import no_content
from lakewarden.names import match_key


class TableChange(msgspec.Struct):
    requirements: list[msgspec.Raw]
    updates: list[msgspec.Raw]
    identifier: Identifier


class CommitTransaction(msgspec.Struct, rename="kebab"):
    table_changes: list[TableChange]


class TransactionEndpoint(CatalogMutation):
    def post(self, request: ApiRequest, *, prefix: str) -> HttpResponse:
        changes = request.decode(CommitTransaction, may_be_large=True).table_changes
        if not changes:
            raise BadRequest("Invalid transaction: table-changes is empty")
        commit_limits.check_transaction(changes)
        _ensure_distinct(changes)
        commits: list[TableCommit] = []
        creations: list[TableCreation] = []
        for change in changes:
            ref = table_ref(prefix, change.identifier)
            body = CommitTable(requirements=change.requirements, updates=change.updates)
            if tables.is_creation(body.requirements):
                into = access.namespace(request.context, ref.namespace, NamespaceAction.CREATE_TABLE)
                creations.append(TableCreation(into, ref.name, body))
            else:
                commits.append(TableCommit(access.table(request.context, ref, TableAction.COMMIT), body))
        multi_table_commit.commit(commits, creations)
        return no_content()


def _ensure_distinct(changes: list[TableChange]) -> None:
    seen: set[tuple[str, ...]] = set()
    for change in changes:
        key = tuple(match_key(name) for name in (*change.identifier.namespace, change.identifier.name))
        if key in seen:
            name = ".".join((*change.identifier.namespace, change.identifier.name))
            raise BadRequest(f"Invalid transaction: {name} is changed twice")
        seen.add(key)
