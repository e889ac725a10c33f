"""What data contracts would say about a change; nothing is changed, written or reserved."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from catalog.iceberg import tables as table_engine
from catalog.iceberg import views as view_engine
from catalog.iceberg.table_draft import LAST_ADDED
from catalog.iceberg.wire import NULL, is_null
from catalog.models import Namespace, Tabular
from catalog.services import commit_limits, pointer, tables
from catalog.services.contracts import effective, gate, verifiers
from catalog.services.contracts.combined import Combined
from catalog.services.contracts.judging import Violation
from catalog.services.contracts.proposals import About, Metadata, Proposal
from lakewarden.authz.interface import Granted
from lakewarden.errors import BadRequest, InvalidArgument
from lakewarden.ids import new_id
from lakewarden.names import check_name

_NO_PLACE: Final = "file:///not-created"


class CommitBody(msgspec.Struct, forbid_unknown_fields=True):
    updates: list[Raw]
    requirements: list[Raw] = []
    identifier: Raw = NULL


class Asked(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    """One of the first four: what a table or view would become, or what would be created in a namespace."""

    schema: Raw = NULL
    commit: CommitBody | None = None
    create_table: Raw = NULL
    create_view: Raw = NULL
    ask_verifiers: bool = False


class _Named(msgspec.Struct):
    name: str


class Verdict(NamedTuple):
    violations: Sequence[Violation]

    @property
    def allowed(self) -> bool:
        return not self.violations


def of_tabular(granted: Granted[Tabular], asked: Asked) -> Verdict:
    """Raises BadRequest unless `schema` or `commit` is given; CommitFailed for a requirement that does not hold, and
    what else the engine refuses.
    """
    _ensure_one(asked, ("schema", "commit"))
    before, after, commit = _changed(granted.target, asked)
    proposal = Proposal(
        "commit",
        gate.about_tabular(granted.target),
        before,
        after,
        granted.context,
        commit.requirements,
        commit.updates,
        is_dry_run=True,
    )
    return _verdict(proposal, effective.of_tabular(granted.target), asked)


def of_namespace(granted: Granted[Namespace], asked: Asked) -> Verdict:
    """Raises BadRequest unless one of `schema` (of a new table), `create-table` and `create-view` is given."""
    _ensure_one(asked, ("schema", "create_table", "create_view"))
    target = granted.target
    kind, body = Tabular.Kind.TABLE, asked.create_table
    if not is_null(asked.create_view):
        kind, body = Tabular.Kind.VIEW, asked.create_view
    elif is_null(body):
        body = Raw(msgspec.json.encode({"name": "new", "schema": asked.schema}))
    name = check_name(_name(body), what=kind.label)
    after: Metadata
    if kind == Tabular.Kind.VIEW:
        after = view_engine.create(bytes(body), uuid=str(new_id()), location=_NO_PLACE, now_ms=tables.now_ms())
    else:
        after = tables.first_metadata(target, bytes(body), uuid=new_id(), location=_NO_PLACE)
    proposal = Proposal("create", About(kind.value, target, name), None, after, granted.context, is_dry_run=True)
    return _verdict(proposal, effective.of_namespace(target), asked)


def _verdict(proposal: Proposal, rules: Combined | None, asked: Asked) -> Verdict:
    violations = gate.judged(proposal, rules)
    if asked.ask_verifiers and rules is not None:
        violations = [*violations, *verifiers.ask(proposal, rules.verifiers)]
    return Verdict(violations)


def _changed(tabular: Tabular, asked: Asked) -> tuple[Metadata, Metadata, CommitBody]:
    stored = pointer.newest(tabular)
    if tabular.kind == Tabular.Kind.VIEW:
        view = view_engine.ViewMetadata.decode(stored.metadata)
        commit = _checked(asked.commit or _replacement(view, asked.schema))
        changed_view = view_engine.commit(view, commit.requirements, commit.updates, now_ms=tables.now_ms())
        return view, changed_view, commit
    table = table_engine.TableMetadata.decode(stored.metadata)
    commit = _checked(asked.commit or _alteration(table, asked.schema))
    changed_table = table_engine.commit(
        table,
        commit.requirements,
        commit.updates,
        base_location=stored.tabular.metadata_location,
        now_ms=tables.now_ms(),
        new_uuid=table.uuid,
    )
    return table, changed_table, commit


def _checked(commit: CommitBody) -> CommitBody:
    commit_limits.check_commit(commit.requirements, commit.updates)
    return commit


def _alteration(table: table_engine.TableMetadata, schema: Raw) -> CommitBody:
    """What gives the table this schema."""
    known = table.find_schema(schema)
    current = {"action": "set-current-schema", "schema-id": LAST_ADDED if known is None else known}
    return CommitBody(_updates(*_adding(schema, known), current))


def _replacement(view: view_engine.ViewMetadata, schema: Raw) -> CommitBody:
    """What gives the view this schema, and leaves its queries."""
    known = view.find_schema(schema)
    number = msgspec.json.decode(view.current_version["version-id"]) + 1
    # an equal version would be used again, and not count as added
    own = {"summary": {"dry-run": str(new_id())}, "schema-id": LAST_ADDED if known is None else known}
    add = {"action": "add-view-version", "view-version": {**view.current_version, **own, "version-id": number}}
    current = {"action": "set-current-view-version", "view-version-id": LAST_ADDED}
    return CommitBody(_updates(*_adding(schema, known), add, current))


def _adding(schema: Raw, known: int | None) -> list[Mapping[str, object]]:
    return [{"action": "add-schema", "schema": schema}] if known is None else []


def _updates(*updates: Mapping[str, object]) -> list[Raw]:
    return [Raw(msgspec.json.encode(each)) for each in updates]


def _name(body: Raw) -> str:
    try:
        return msgspec.json.decode(body, type=_Named).name
    except msgspec.MsgspecError as error:
        raise InvalidArgument(f"Invalid creation: {error}") from error


def _is_null(value: Raw | CommitBody) -> bool:
    return isinstance(value, Raw) and is_null(value)


def _ensure_one(asked: Asked, names: Sequence[str]) -> None:
    everything = ("schema", "commit", "create_table", "create_view")
    given = [name for name in everything if (value := getattr(asked, name)) is not None and not _is_null(value)]
    if len(given) != 1 or given[0] not in names:
        wanted = ", ".join(name.replace("_", "-") for name in names)
        found = ", ".join(name.replace("_", "-") for name in given) or "none"
        raise BadRequest(f"Invalid request body: exactly one of {wanted} is expected here, given: {found}")
