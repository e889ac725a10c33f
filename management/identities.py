"""Parses the principal that a request asks about; for actions, permission checks and grants."""

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from lakewarden.context import PrincipalId
from lakewarden.errors import BadRequest
from permissions.privileges import NamedPrincipal

_USER_ID = re.compile(r"[a-z0-9-]+~.{1,255}")
_SHOWN = 80
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"user": {"type": "string"}, "role": {"type": "string", "format": "uuid"}},
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
"""The OpenAPI schema of the tagged union in a body."""


def of_query(query: Mapping[str, str]) -> NamedPrincipal | None:
    """Parse `principalUser` or `principalRole` in a query; None: the caller. Raises BadRequest."""
    given = {kind: query[name] for kind, name in _PARAMETERS.items() if name in query}
    if len(given) > 1:
        raise BadRequest("principalUser and principalRole are both given: send only one of them")
    for kind, value in given.items():
        return _identity(kind, value, where=_PARAMETERS[kind])
    return None


def of_body(value: object, *, where: str) -> NamedPrincipal | None:
    """Parse the tagged union `{"user": id}` or `{"role": id}`; None: the caller. Raises BadRequest."""
    if value is None:
        return None
    if isinstance(value, Mapping) and len(value) == 1:
        kind, named = next(iter(value.items()))
        if kind in _PARAMETERS:
            return _identity(kind, named, where=f"{where}.{kind}")
    raise BadRequest(f'{where}: {{"user": "<provider>~<subject>"}} or {{"role": "<id>"}} is expected')


_PARAMETERS = {"user": "principalUser", "role": "principalRole"}


def _identity(kind: str, value: object, *, where: str) -> NamedPrincipal:
    if kind == "user":
        if not isinstance(value, str) or not _USER_ID.fullmatch(value) or not value.isprintable():
            raise BadRequest(
                f"{where}: {str(value)[:_SHOWN]!r} is not a valid user id: <provider>~<subject> is expected"
            )
        return NamedPrincipal(user=PrincipalId(value))
    try:
        return NamedPrincipal(role=str(UUID(str(value))))
    except ValueError:
        raise BadRequest(f"{where}: {str(value)[:_SHOWN]!r} is not a valid role id: a UUID is expected") from None
