"""The reference page of permissions, made from the model itself; `write_reference` writes it."""

from collections.abc import Iterator

from lakewarden.authz.actions import ACTIONS, TABULAR_TYPES, Action, ObjectType, UserAction
from lakewarden.authz.model import (
    DESCRIPTIONS,
    GRANTABLE,
    IMPLIES,
    INHERITED,
    Level,
    Privilege,
    effective,
    is_allowed,
    may_grant,
    wording,
)

HEAD = """# Permissions

This page lists the privileges that can be granted on each type of object, what they imply there and on objects inside,
and what each action needs. It is generated from the model that the server uses. [Permissions
explained](../explanation/permissions.md) is an introduction.

A privilege applies to the object that it is granted on and, according to the tables, to everything inside it. `see` is
never granted: it follows from any other privilege on the object, and from any privilege on something inside it; whoever
sees a project may also read its roles and tag definitions. For a caller who may not see an object, it does not exist
(404). A caller who sees an object but may not do something gets 403. `GET …/explanation?action=…` returns the grants
that decide, and `GET …/who-may?action=…` lists who may.

"""
_LYING_IN = {
    ObjectType.SERVER: (ObjectType.PROJECT,),
    ObjectType.PROJECT: (ObjectType.ROLE, ObjectType.TAG_DEFINITION, ObjectType.WAREHOUSE),
    ObjectType.WAREHOUSE: (ObjectType.NAMESPACE,),
    ObjectType.NAMESPACE: (ObjectType.NAMESPACE, *TABULAR_TYPES),
}
MANAGED = """## Managed access

In a warehouse or namespace with managed access, `ownership` of a namespace, table, view or generic table
(including the namespace itself) implies `modify` and `create`, but not `manage_grants`: owners cannot grant privileges
on their objects.
"""


def page() -> str:
    """The whole page."""
    return "\n".join(line.rstrip() for line in _lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from (HEAD, "")
    for kind in ObjectType:
        yield f"## On a {_word(kind)}" if kind is not ObjectType.SERVER else "## On the server"
        yield ""
        yield from _privileges(kind)
        yield ""
        yield from _actions(kind, ACTIONS[kind])
        yield ""
        if kind is ObjectType.SERVER:
            yield "To a user of the server (`read` and `read_role_assignments` of themselves are open to everybody):"
            yield ""
            yield from _actions(kind, tuple(UserAction), with_least=False)
            yield ""
    yield MANAGED


def _word(kind: ObjectType) -> str:
    return kind.value.replace("-", " ")


def _privileges(kind: ObjectType) -> Iterator[str]:
    yield "| privilege | meaning | category | gives here | gives on what lies in it | its holder may grant here |"
    yield "|---|---|---|---|---|---|"
    for privilege in sorted(GRANTABLE[kind]):
        about = DESCRIPTIONS[privilege]
        held = effective([Level(kind, {privilege})])
        grants = [each for each in sorted(GRANTABLE[kind]) if may_grant(each, held, on=kind)]
        cells = (
            f"`{privilege}`",
            about.text,
            about.category,
            _names(held - {privilege, Privilege.SEE}),
            "; ".join(_passed_on(kind, held)) or "nothing",
            "what they hold" if privilege is Privilege.PASS_GRANTS else _all_or(grants, sorted(GRANTABLE[kind])),
        )
        yield f"| {' | '.join(cells)} |"


def _passed_on(kind: ObjectType, held: frozenset[Privilege]) -> Iterator[str]:
    """`modify on warehouses`, … for each kind that lies in the object, the most first; kinds alike are one."""
    kinds_by_names: dict[str, list[str]] = {}
    for child in _LYING_IN.get(kind, ()):
        given = {INHERITED[child][each] for each in held - {Privilege.SEE} if each in INHERITED[child]}
        implied = {weaker for each in given for weaker in _implied(child, each)}
        if strongest := given - implied:
            kinds_by_names.setdefault(_names(strongest), []).append(f"{_word(child)}s")
    return (f"{names} on {', '.join(kinds)}" for names, kinds in kinds_by_names.items())


def _implied(kind: ObjectType, privilege: Privilege) -> frozenset[Privilege]:
    """What the privilege amounts to on the same object, itself not counted."""
    found: set[Privilege] = set()
    waiting = list(IMPLIES[kind].get(privilege, ()))
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting.extend(IMPLIES[kind].get(each, ()))
    return frozenset(found)


def _actions(kind: ObjectType, actions: tuple[Action, ...], *, with_least: bool = True) -> Iterator[str]:
    yield f"| action | needs |{' least privilege on the object that suffices |' if with_least else ''}"
    yield f"|---|---|{'---|' if with_least else ''}"
    for action in actions:
        least = f" {_names(_least(kind, action))} |" if with_least else ""
        yield f"| `{action.value}` | {wording(action)} |{least}"


def _least(kind: ObjectType, action: Action) -> set[Privilege]:
    enough = {each for each in GRANTABLE[kind] if is_allowed(action, effective([Level(kind, {each})]))}
    return {each for each in enough if not enough & _implied(kind, each)}


def _names(privileges: frozenset[Privilege] | set[Privilege]) -> str:
    return ", ".join(f"`{each}`" for each in sorted(privileges)) or "none"


def _all_or(some: list[Privilege], every: list[Privilege]) -> str:
    return "everything" if some == every else _names(set(some))
