"""Creates, lists and changes the tag definitions of a project; `catalog.services.tags` sets the tags and ends them."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError
from django.utils import timezone
from psycopg.errors import ForeignKeyViolation

from lakewarden import config, quotas
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, InvalidArgument, LakewardenError, NoSuchProject, NoSuchTagDefinition
from lakewarden.events.change_recording import Change, record
from lakewarden.ids import new_id
from lakewarden.names import check_name, match_key
from lakewarden.paging import Page
from tenants.access import tag_chain
from tenants.models import Project, TagDefinition
from tenants.models.tag_definition import Scope, ValueKind

MAX_DESCRIPTION_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class Wanted:
    """A definition as a request describes it."""

    name: str
    scope: Sequence[str]
    description: str | None = None


def create(
    granted: Granted[Project], wanted: Wanted, *, value_kind: str, allowed_values: Sequence[str] | None
) -> TagDefinition:
    """Create a definition; the caller becomes its owner.

    Raises InvalidArgument for a name, scope or allowed value that cannot be, AlreadyExists if the name (ignoring case)
    is taken, QuotaExceeded.
    """
    _check_text(wanted)
    definition = TagDefinition(
        id=new_id(),
        project=granted.target,
        name=wanted.name,
        name_key=match_key(wanted.name),
        description=wanted.description,
        scope=_ordered(wanted.scope),
        value_kind=value_kind,
        allowed_values=_allowed(value_kind, allowed_values),
    )
    rows = TagDefinition.objects.filter(project=granted.target)
    quotas.ensure_room("tag_definitions_in_project", rows, within=granted.target.id)
    try:
        with changing():
            definition.save(force_insert=True)
            grants.give_creator(tag_chain(definition), granted.context.caller)
            data = {**_described(definition), "value-kind": value_kind}
            record(Change("createTagDefinition", *_place(definition), data), granted.context)
    except IntegrityError as error:
        raise _taken(definition, error) from error
    return definition


def listed(granted: Granted[Project], page: Page) -> tuple[list[TagDefinition], str | None]:
    """A page of the project's definitions, sorted by name, without their allowed values; the key of the next page."""
    found = TagDefinition.objects.filter(project=granted.target).defer("allowed_values").order_by("name_key")
    if page.after is not None:
        found = found.filter(name_key__gt=page.after)
    return page.cut([(definition, definition.name_key) for definition in found[: page.limit]])


def named(granted: Granted[Project], name: str) -> list[TagDefinition]:
    """The definition with this name, ignoring case; none or one."""
    found = TagDefinition.objects.filter(project=granted.target, name_key=match_key(name))
    return list(found.defer("allowed_values")) if "\x00" not in name else []


def update(granted: Granted[TagDefinition], wanted: Wanted, *, add_allowed_values: Sequence[str] = ()) -> TagDefinition:
    """Set name, description (None removes it) and scope, and add allowed values.

    The scope must contain the present one: objects outside of a smaller one could have the tag. Raises what `create`
    raises, and NoSuchTagDefinition if it was deleted.
    """
    _check_text(wanted)
    context = granted.context
    try:
        with changing():
            definition = locked(granted.target)
            before = _described(definition)
            _widen(definition, wanted.scope, add_allowed_values)
            definition.name, definition.name_key = wanted.name, match_key(wanted.name)
            definition.description = wanted.description
            now = _described(definition)
            fields = [member for member, value in now.items() if before[member] != value]
            if fields:
                definition.updated_at = timezone.now()
                definition.save()
                record(Change("updateTagDefinition", *_place(definition), {**now, "fields": fields}), context)
    except IntegrityError as error:
        raise _taken(definition, error) from error
    return definition


def locked(definition: TagDefinition) -> TagDefinition:
    """The current row, locked until the transaction ends. Raises NoSuchTagDefinition if it was deleted."""
    found = TagDefinition.objects.select_for_update().filter(id=definition.id).first()
    if found is None:
        raise NoSuchTagDefinition(f"Tag definition does not exist: {definition.id}")
    return found


def check_value(definition: TagDefinition, value: str | None) -> None:
    """Raises InvalidArgument for a value that a tag of this definition cannot have."""
    kind = definition.value_kind
    if kind == ValueKind.MARKER:
        if value is not None:
            raise InvalidArgument(f"The tag {definition.name} is a marker and has no value: omit 'value'")
        return
    if value is None:
        raise InvalidArgument(f"The tag {definition.name} needs a value: 'value' is missing")
    if kind == ValueKind.FREE_TEXT:
        _check_characters(value, what="value")
    elif value not in (definition.allowed_values or ()):
        shown = ", ".join(sorted(definition.allowed_values or ())[:_MOST_SHOWN])
        raise InvalidArgument(f"{value[:80]!r} is not an allowed value of the tag {definition.name}: one of {shown}")


def _widen(definition: TagDefinition, scope: Sequence[str], values: Sequence[str]) -> None:
    if left_out := set(definition.scope) - set(scope):
        raise InvalidArgument(
            f"The scope of a tag can only be widened, and {', '.join(sorted(left_out))} is missing in the new one"
        )
    definition.scope = _ordered(scope)
    if values:
        if definition.value_kind != ValueKind.ENUMERATED:
            raise InvalidArgument(f"Only a tag of the kind {ValueKind.ENUMERATED} has allowed values")
        known = definition.allowed_values or []
        added = [each for each in dict.fromkeys(values) if each not in known]
        definition.allowed_values = _allowed(definition.value_kind, [*known, *added])


def _allowed(kind: str, values: Sequence[str] | None) -> list[str] | None:
    """Raises InvalidArgument unless values are given for this kind, and can be."""
    if kind != ValueKind.ENUMERATED:
        if values is not None:
            raise InvalidArgument(f"A tag of the kind {kind} has no allowed values: omit 'allowed-values'")
        return None
    most = config.current().tags.max_allowed_values
    if not values:
        raise InvalidArgument(f"A tag of the kind {kind} needs at least one allowed value")
    if len(values) > most:
        raise InvalidArgument(f"{len(values)} allowed values: at most {most} are allowed (tags.max_allowed_values)")
    for value in values:
        _check_characters(value, what="allowed value")
    if len(set(values)) < len(values):
        raise InvalidArgument("Invalid allowed values: the same value is given more than once")
    return list(values)


def _check_text(wanted: Wanted) -> None:
    check_name(wanted.name, what="tag")
    for part in wanted.name.split("."):
        # a part that looks like another one, or that a path cannot carry, would be taken for another tag
        if not part or part != part.strip() or "/" in part or not part.isprintable():
            raise InvalidArgument(
                f"Invalid tag name {wanted.name[:80]!r}: the parts between the dots must be visible characters without "
                "'/', and must not be empty or begin or end with a space"
            )
    if wanted.description is not None and "\x00" in wanted.description:
        raise InvalidArgument("Invalid description: it contains the character U+0000")


def _check_characters(value: str, *, what: str) -> None:
    most = config.current().tags.max_value_length
    if not value.strip():
        raise InvalidArgument(f"Invalid {what}: it is empty")
    if len(value) > most:
        raise InvalidArgument(
            f"Invalid {what}: {len(value)} characters, at most {most} are allowed (tags.max_value_length)"
        )
    for character in value:
        if character < " " or character == "\x7f" or "\ud800" <= character <= "\udfff":
            raise InvalidArgument(f"Invalid {what}: it contains the character {character!r}, which cannot be stored")


def _ordered(scope: Sequence[str]) -> list[str]:
    return [each.value for each in Scope if each in scope]


def _described(definition: TagDefinition) -> dict[str, object]:
    return {
        "name": definition.name,
        "description": definition.description,
        "scope": definition.scope,
        "allowed-values": definition.allowed_values,
    }


def _place(definition: TagDefinition) -> tuple[str, str, str]:
    """Type, id and project of the object, as changes are recorded."""
    return "tag-definition", str(definition.id), definition.project_id


def _taken(definition: TagDefinition, error: IntegrityError) -> LakewardenError:
    if isinstance(error.__cause__, ForeignKeyViolation):
        return NoSuchProject(f"Project does not exist: {definition.project_id}")
    return AlreadyExists(f"A tag definition with the name {definition.name!r} exists already in this project")


_MOST_SHOWN = 20
