"""The reference page of errors, made from the tree of exceptions; `write_reference` writes it."""

from collections.abc import Iterator
from importlib import import_module

from catalog.api.lakehouse import ERROR_TYPES
from lakewarden.errors import LakewardenError

HEAD = """# Errors

All APIs return errors in the format of the Iceberg REST specification:

```json
{"error": {"message": "Table does not exist: sales.orders", "type": "NoSuchTableException", "code": 404}}
```

`code` is the HTTP status. `type` is for programs. `message` is for people; its wording may change. The header
`X-Request-Id` identifies the request in the server's log and in the audit; the message of a 5xx contains it, too.

For an object that the caller may not see, the response is the same as for one that does not exist: 404. A 503 has
`Retry-After` and guarantees that nothing was changed. If it is not known whether a change was made, the type is
`CommitStateUnknownException`.

| status | type | when | what to do |
|---|---|---|---|
"""
TAIL = """
Below `/lakehouse`, some types have the names that its clients expect:

| elsewhere | below `/lakehouse` |
|---|---|
"""

_RELOAD = "load it again and decide anew"
_LOOK = "check the name, and ask for a right on the object"
_ABOUT = {
    "BadRequestException": ("the request is malformed", "change the request"),
    "ProjectIdMissingException": (
        "the request names no project, and there is no default one",
        "send the header `x-project-id`",
    ),
    "QuotaExceededException": (
        "there are as many objects of the kind as the server allows",
        "delete some, or ask the operator to raise the limit; see [Limits](../explanation/limits.md)",
    ),
    "ImmutablePropertyException": (
        "the property can be set once, and neither changed nor removed",
        "omit the property; for another value, create another table",
    ),
    "IllegalArgumentException": ("an argument breaks a rule of the Iceberg format", "change the request"),
    "ValidationException": ("the request contradicts itself or the stored state", "change the request"),
    "CatalogAlreadyBootstrapped": ("the server has an administrator already", "nothing, or ask them"),
    "NotAuthorizedException": (
        "there is no token, or it is not valid or has expired",
        "get a new token from the identity provider",
    ),
    "ForbiddenException": (
        "the caller sees the object, but may not do this to it",
        "ask for the right; [`…/explanation`](../explanation/permissions.md) says which one is missing",
    ),
    "NotFoundException": ("something that the request names does not exist", "check the name or id"),
    "NoSuchRouteException": ("there is nothing at this path", "check the address"),
    "NoSuchProjectException": ("the project does not exist, or the caller may not see it", _LOOK),
    "NoSuchWarehouseException": ("the warehouse does not exist, or the caller may not see it", _LOOK),
    "NoSuchNamespaceException": ("the namespace does not exist, or the caller may not see it", _LOOK),
    "NoSuchTableException": ("the table does not exist, or the caller may not see it", _LOOK),
    "NoSuchViewException": ("the view does not exist, or the caller may not see it", _LOOK),
    "NoSuchGenericTableException": ("the generic table does not exist, or the caller may not see it", _LOOK),
    "NoSuchUserException": ("the user is not known, or the caller may not see them", _LOOK),
    "NoSuchRoleException": ("the role does not exist, or the caller may not see it", _LOOK),
    "NoSuchTagDefinitionException": ("the tag definition does not exist, or the caller may not see it", _LOOK),
    "NoSuchColumnException": ("the table's current schema has no column with this name", "use a name of its schema"),
    "NoSuchTaskException": ("the task does not exist, or the caller may not see it", _LOOK),
    "TupleNotFoundError": (
        "the assignment to remove is not there",
        "nothing, or use `…/grants`, which accepts it",
    ),
    "MethodNotAllowedException": ("the path exists, but not with this method", "use another method"),
    "UnsupportedOperationException": (
        "the API names the operation, but not this server",
        "do without it",
    ),
    "RequestTimeoutException": ("the request did not arrive in time", "send it again, and faster"),
    "ConflictException": ("the request contradicts the present state", _RELOAD),
    "TupleAlreadyExistsError": (
        "the assignment to add is there already",
        "nothing, or use `…/grants`, which accepts it",
    ),
    "AlreadyExistsException": ("the name, id or location is taken", "choose another one"),
    "NamespaceNotEmptyException": (
        "the namespace still holds something",
        "empty it, or use `recursive=true`",
    ),
    "WarehouseNotEmptyException": ("the warehouse still holds something", "drop what is in it"),
    "WarehouseHasUnfinishedTasksException": ("files of dropped tables are still being removed", "wait for the tasks"),
    "ProjectNotEmptyException": ("the project still has warehouses", "delete them first"),
    "TagInUseException": ("objects have the tag whose definition is to be deleted", "remove it from them first"),
    "ProtectedException": ("the object is protected against deletion", "remove the protection, or use `force=true`"),
    "ContractViolatedException": (
        "a data contract does not allow the change",
        "change what the message names, or have the contract changed by those who set it",
    ),
    "CommitFailedException": (
        "a requirement of the commit does not hold any more",
        "load the table again and repeat the commit; engines do so by themselves",
    ),
    "LastAdministratorException": ("nobody else could administer the server", "name another administrator first"),
    "RoleMembershipCycleException": ("a role would be a member of itself", "change the membership"),
    "RoleMembershipDepthExceededException": ("the chain of nested roles would be too long", "nest them less deeply"),
    "TooManyRequestsException": (
        "the caller sends faster than the limit, or has too many connections",
        "wait for the seconds of `Retry-After`",
    ),
    "PayloadTooLargeException": (
        "the body is too large",
        "send less; see [Limits](../explanation/limits.md)",
    ),
    "UnprocessableEntityException": ("the members of the request do not fit each other", "change the request"),
    "HeadersTooLargeException": ("the headers are larger than 64 KiB", "send fewer headers, or a smaller token"),
    "CommitStateUnknownException": (
        "the outcome of a change could not be learned",
        "load the object and look; remove no files; with an `Idempotency-Key`, repeat the same request",
    ),
    "InternalServerError": ("a defect of the server", "report it with the request id"),
    "ServiceUnavailableException": (
        "the server or something that it needs is busy or away; nothing was changed",
        "repeat the request after the seconds of `Retry-After`",
    ),
}


class UndescribedError(Exception):
    """An error class has a type that this page does not describe, or the page describes one that no class has."""


def page() -> str:
    """The whole page. Django's apps must be loaded. Raises UndescribedError."""
    import_module("lakewarden.urls")  # every API, and with it every exception
    types = {error.wire_type: error.status for error in _classes(LakewardenError)}
    if differing := types.keys() ^ _ABOUT.keys():
        raise UndescribedError(f"scripts/errors.py and the exceptions differ in {', '.join(sorted(differing))}")
    found = sorted(types.items(), key=lambda item: (item[1], list(_ABOUT).index(item[0])))
    rows = [f"| {status} | `{name}` | {_ABOUT[name][0]} | {_ABOUT[name][1]} |" for name, status in found]
    others = [f"| `{here}` | `{there}` |" for here, there in ERROR_TYPES.items()]
    return HEAD + "\n".join(rows) + "\n" + TAIL + "\n".join(others) + "\n"


def _classes(error: type[LakewardenError]) -> Iterator[type[LakewardenError]]:
    yield error
    for below in error.__subclasses__():
        yield from _classes(below)
