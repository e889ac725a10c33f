"""Data contracts of warehouses, namespaces, tables and views: `…/contract`, its `…/effective` and `…/check`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from catalog import access as catalog_access
from catalog.models import Namespace, Tabular
from catalog.services.contracts import changes, documents, dry_runs, effective
from catalog.services.contracts.changes import Governed, SetContract
from catalog.services.contracts.combined import Combined, Level, combine
from catalog.services.contracts.documents import Verifier
from catalog.services.contracts.judging import Violation
from catalog.tabular_types import TABLE, VIEW, TabularType
from lakewarden.authz.actions import NamespaceAction, ObjectType, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.context import RequestContext
from management.api import ManagementView
from management.base_serializers import Body, Shape
from management.tabular_paths import id_name, path_of
from tenants import access

Parts = Mapping[str, str]
_MODES = ("none", "backward", "forward", "full")
_TEXTS = serializers.ListField(child=serializers.CharField(), required=False)
_ANYTHING = serializers.DictField(required=False)


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of object: `read` returns one whose contract the caller may read, `manage` one whose they may set."""

    type: ObjectType
    path: str
    read: Callable[[RequestContext, Parts], Governed]
    manage: Callable[[RequestContext, Parts], Governed]


class RequiredDocsShape(Shape):
    table = serializers.BooleanField(required=False, help_text="The property `comment` must have a text.")
    columns = serializers.BooleanField(required=False, help_text="Each column must have a `doc`.")


class LaidOutFieldShape(Shape):
    source = serializers.CharField(help_text="The full name of the column.")  # type: ignore[assignment]
    transform = serializers.CharField(required=False, help_text="Such as `day` or `bucket[16]`; any without it.")


class VerifierShape(Shape):
    name = serializers.CharField(help_text="A verifier of the server's configuration.")
    on_failure = serializers.ChoiceField(["deny", "allow"], required=False)
    asked_about = serializers.ChoiceField(["every-change", "changes-of-definition"], required=False)


class RulesShape(Shape):
    schema_compatibility = serializers.ChoiceField(_MODES, required=False)
    protected_columns = _TEXTS
    required_docs = RequiredDocsShape(required=False)
    required_properties = _TEXTS
    forbidden_properties = _TEXTS
    fixed_properties = serializers.DictField(child=serializers.CharField(allow_blank=True), required=False)
    required_partition_fields = LaidOutFieldShape(many=True, required=False)
    required_sort_fields = LaidOutFieldShape(many=True, required=False)
    verifier = VerifierShape(required=False)


class ContractShape(Shape):
    contract = serializers.DictField(help_text="The rules as they were set.")
    version = serializers.IntegerField(required=False)
    set_by = serializers.CharField(required=False)
    set_at = serializers.DateTimeField(required=False)


class LevelShape(Shape):
    type = serializers.CharField()
    id = serializers.UUIDField()
    name = serializers.CharField()


class EffectiveRuleShape(Shape):
    rule = serializers.CharField()
    field = serializers.CharField(required=False)
    value = serializers.CharField(required=False)
    set_on = LevelShape(source="level")


class EffectiveShape(Shape):
    version = serializers.IntegerField()
    rules = EffectiveRuleShape(many=True)
    contradictions = serializers.ListField(child=serializers.CharField())


class ContractCheckBody(Body):
    schema = serializers.DictField(required=False, help_text="The schema that it would get, as in metadata.")
    commit = serializers.DictField(required=False, help_text="The body of a commit: `updates`, `requirements`.")
    create_table = serializers.DictField(required=False, help_text="The body of a creation of a table.")
    create_view = serializers.DictField(required=False, help_text="The body of a creation of a view.")
    ask_verifiers = serializers.BooleanField(required=False)


class ViolationShape(Shape):
    rule = serializers.CharField()
    field = serializers.CharField(required=False)
    reason = serializers.CharField()
    set_on = LevelShape(source="level")


class VerdictShape(Shape):
    allowed = serializers.BooleanField()
    violations = ViolationShape(many=True)


class ObjectContract(ManagementView):
    kind = cast("Kind", None)

    @extend_schema(responses={200: ContractShape})
    def get(self, _request: Request, **parts: str) -> Response:
        """Read the object's own data contract. It is empty if none is set there."""
        return Response(_shown(changes.find(self.kind.read(self.context, parts))))

    @extend_schema(request=RulesShape, responses={200: ContractShape})
    def put(self, _request: Request, **parts: str) -> Response:
        """Set the object's data contract, which replaces the one it has.

        It applies to the next commit on every replica. It needs `modify`, and ownership or `manage_grants`.
        """
        contract = documents.parse(self.call.decode(dict[str, Any]))
        return Response(_shown(changes.put(self.kind.manage(self.context, parts), contract)))

    @extend_schema(responses={204: None})
    def delete(self, _request: Request, **parts: str) -> Response:
        """Remove the object's own data contract. Nothing happens if none is set there.

        The contracts of what it lies in still apply.
        """
        changes.remove(self.kind.manage(self.context, parts))
        return Response(status=204)


class EffectiveContract(ManagementView):
    kind = cast("Kind", None)

    @extend_schema(responses={200: EffectiveShape})
    def get(self, _request: Request, **parts: str) -> Response:
        """List the rules that apply to the object, its own and inherited ones, each with the object that sets it."""
        target = self.kind.read(self.context, parts).target
        namespace = target if isinstance(target, Namespace) else cast("Tabular", target).namespace
        found = effective.read(namespace, target if isinstance(target, Tabular) else None)
        rules = combine(found)
        plain = {
            "version": namespace.warehouse.contracts,
            "rules": _rules(rules),
            "contradictions": rules.contradictions,
        }
        return Response(EffectiveShape.of(plain))


class ContractCheck(ManagementView):
    kind = cast("Kind", None)

    @extend_schema(request=ContractCheckBody, responses={200: VerdictShape})
    def post(self, _request: Request, **parts: str) -> Response:
        """Say what the data contracts would refuse of a change of the object, without making it."""
        asked = self.call.decode(dry_runs.Asked, may_be_large=True)
        granted = self.kind.read(self.context, parts)
        if isinstance(granted.target, Tabular):
            verdict = dry_runs.of_tabular(granted, asked)
        else:
            verdict = dry_runs.of_namespace(cast("Granted[Namespace]", granted), asked)
        plain = {"allowed": verdict.allowed, "violations": [_violation(each) for each in verdict.violations]}
        return Response(VerdictShape.of(plain))


def _shown(found: SetContract | None) -> dict[str, Any]:
    if found is None:
        return ContractShape.of({"contract": {}, "version": None, "set_by": None, "set_at": None})
    plain = {"contract": found.contract.stored, "version": found.version}
    return ContractShape.of({**plain, "set_by": found.set_by, "set_at": found.set_at})


def _violation(each: Violation) -> dict[str, Any]:
    return {"rule": each.rule, "field": each.field or None, "reason": each.reason, "level": each.level}


def _rules(rules: Combined) -> list[dict[str, Any]]:
    level = rules.backward or rules.forward
    found: list[tuple[str, str | None, str | None, Level | None]] = [
        ("schema-compatibility", None, rules.mode, level),
        ("required-docs", "table", None, rules.table_doc),
        ("required-docs", "columns", None, rules.column_docs),
        *(("protected-columns", name, None, at) for name, at in rules.protected_columns.items()),
        *(("required-properties", name, None, at) for name, at in rules.required_properties.items()),
        *(("forbidden-properties", name, None, at) for name, at in rules.forbidden_properties.items()),
        *(("fixed-properties", name, value, at) for name, (value, at) in rules.fixed_properties.items()),
        *(("required-partition-fields", str(each), None, at) for each, at in rules.partition_fields.items()),
        *(("required-sort-fields", str(each), None, at) for each, at in rules.sort_fields.items()),
        *(("verifier", each.name, _manner(each), at) for each, at in rules.verifiers),
    ]
    return [
        {"rule": rule, "field": name, "value": value, "level": at} for rule, name, value, at in found if at is not None
    ]


def _manner(verifier: Verifier) -> str:
    return f"on-failure={verifier.on_failure}, asked-about={verifier.asked_about}"


def _of_tabulars(kind: TabularType) -> Kind:
    def found(action: Any) -> Callable[[RequestContext, Parts], Granted[Tabular]]:  # noqa: ANN401 an action of its type
        return lambda context, parts: catalog_access.tabular_in(
            context, parts["warehouse_id"], kind, parts[id_name(kind)], action
        )

    actions: Any = kind.actions
    return Kind(kind.object_type, path_of(kind), found(actions.GET_METADATA), found(actions.SET_CONTRACT))


def _warehouse(action: WarehouseAction) -> Callable[[RequestContext, Parts], Governed]:
    return lambda context, parts: access.warehouse(context, parts["warehouse_id"], action)


def _namespace(action: NamespaceAction) -> Callable[[RequestContext, Parts], Governed]:
    return lambda context, parts: catalog_access.namespace_in(
        context, parts["warehouse_id"], parts["namespace_id"], action
    )


_IN_WAREHOUSE = "warehouse/<str:warehouse_id>"
_WAREHOUSE = Kind(
    ObjectType.WAREHOUSE,
    _IN_WAREHOUSE,
    _warehouse(WarehouseAction.GET_METADATA),
    _warehouse(WarehouseAction.SET_CONTRACT),
)
_INSIDE = (
    Kind(
        ObjectType.NAMESPACE,
        f"{_IN_WAREHOUSE}/namespace/<str:namespace_id>",
        _namespace(NamespaceAction.GET_METADATA),
        _namespace(NamespaceAction.SET_CONTRACT),
    ),
    _of_tabulars(TABLE),
    _of_tabulars(VIEW),
)

routes = [
    *(path(f"{kind.path}/contract", ObjectContract.as_view(kind=kind)) for kind in (_WAREHOUSE, *_INSIDE)),
    *(path(f"{kind.path}/contract/effective", EffectiveContract.as_view(kind=kind)) for kind in _INSIDE),
    *(path(f"{kind.path}/contract/check", ContractCheck.as_view(kind=kind)) for kind in _INSIDE),
]
