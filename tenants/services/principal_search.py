"""Finds users and roles by parts of their names (trigrams), without an extension of PostgreSQL."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger.insiders import IS_INSIDER
from lakewarden.names import match_key
from lakewarden.prepared_statements import fetch
from tenants.models import Project, Role, Server, User

MAX_SEARCH_LENGTH = 64
LIMIT = 10
_CANDIDATES = 100
_PART = 3  # letters


@dataclass(frozen=True, slots=True)
class FoundUser:
    """`email` is None if the user has none or the caller may not see it."""

    id: str
    name: str
    email: str | None
    user_type: str


def roles(granted: Granted[Project], text: str) -> list[Role]:
    """The ten roles of the project whose names are most similar to `text`, best first; if it
    is an id, only that role.
    """
    of_project = Role.objects.filter(project=granted.target)
    try:
        return list(of_project.filter(id=UUID(text)))
    except ValueError:
        rows = fetch(_ROLES, {"project": granted.target.id, "patterns": patterns(text), "limit": _CANDIDATES})
        found = of_project.in_bulk([identifier for (identifier,) in rows])
        return sorted(found.values(), key=lambda role: _rank(text, role.name))[:LIMIT]


def users(granted: Granted[Server], text: str) -> list[FoundUser]:  # noqa: ARG001 proves the right
    """The ten users of the server whose names are most similar to `text`, best first.

    A user with exactly this id or email comes first.
    """
    exact = _exactly(text)
    like = _like(text, project_id=None)
    return [FoundUser(user.id, user.name, user.email, user.user_type) for user in _merged(exact, like)]


def users_in_project(granted: Granted[Project], text: str) -> list[FoundUser]:
    """Like `users`, among those who hold a grant or a membership in the project.

    Other users are found only by their exact id or email; their email is returned only if the caller gave it.
    """
    exact = _exactly(text)
    insiders = {
        user for (user,) in fetch(_INSIDERS, {"ids": [user.id for user in exact], "project": granted.target.id})
    }
    like = _like(text, project_id=granted.target.id)
    insiders.update(user.id for user in like)
    return [
        FoundUser(user.id, user.name, user.email if user.id in insiders or user.id != text else None, user.user_type)
        for user in _merged(exact, like)
    ]


def patterns(text: str) -> list[str]:
    """Patterns for LIKE that select candidates: a name must contain three consecutive letters of a word of `text`.

    A word of one or two letters must be the beginning of the name. Whether PostgreSQL knows upper and lower case
    beyond ASCII depends on the database's locale, so each part comes in the usual spellings.
    """
    words = re.findall(r"\w+", match_key(text))
    if not words:
        return [f"%{_escaped(text.strip())}%"]
    found: set[str] = set()
    for word in words:
        if len(word) < _PART:
            found.update(f"{_escaped(each)}%" for each in _spellings(word))
        for part in _parts(word):
            found.update(f"%{_escaped(each)}%" for each in _spellings(part))
    return sorted(found)


def _spellings(part: str) -> set[str]:
    return {part} if part.isascii() else {part, part.upper(), part.capitalize()}


def _parts(word: str) -> Iterable[str]:
    return (word[start : start + _PART] for start in range(len(word) - _PART + 1))


def _escaped(text: str) -> str:
    """Escape the characters that have a meaning in LIKE."""
    return re.sub(r"([\\%_])", r"\\\1", text)


def _rank(text: str, name: str) -> tuple[float, str]:
    """A sort key, best first: the share of three-letter parts that both have in common, then the name."""
    key = match_key(name)
    asked, there = ({p for w in re.findall(r"\w+", each) for p in _parts(f" {w} ")} for each in (match_key(text), key))
    return -len(asked & there) / max(len(asked | there), 1), key


def _exactly(text: str) -> list[User]:
    return list(User.objects.filter(Q(id=text) | Q(email__iexact=text), deleted_at__isnull=True).order_by("id")[:LIMIT])


def _like(text: str, *, project_id: str | None) -> list[User]:
    rows = fetch(_USERS, {"project": project_id, "patterns": patterns(text), "limit": _CANDIDATES})
    found = User.objects.in_bulk([identifier for (identifier,) in rows])
    return sorted(found.values(), key=lambda user: (*_rank(text, user.name), user.id))


def _merged(exact: Sequence[User], like: Sequence[User]) -> list[User]:
    return list({user.id: user for user in (*exact, *like)}.values())[:LIMIT]


_COUNT = "(select count(*) from unnest(%(patterns)s::text[]) as p(pattern) where {} like p.pattern)"
_ROLES = f"""
    select id from role where project_id = %(project)s and name_key like any(%(patterns)s::text[])
    order by {_COUNT.format("name_key")} desc, length(name_key), name_key limit %(limit)s
"""  # noqa: S608 text of our own
_USERS = f"""
    select u.id from lakewarden_user u
    where u.deleted_at is null and lower(u.name) like any(%(patterns)s::text[])
      and (%(project)s::text is null or {IS_INSIDER})
    order by {_COUNT.format("lower(u.name)")} desc, length(u.name), u.id limit %(limit)s
"""  # noqa: S608 text of our own
_INSIDERS = f"select u.id from unnest(%(ids)s::text[]) as u(id) where {IS_INSIDER}"  # noqa: S608 text of our own
