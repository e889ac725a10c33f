"""`RequestContext`: caller, project and request id of one request, passed through all layers as an argument."""

from dataclasses import dataclass, field
from typing import Literal, NewType
from uuid import UUID

PrincipalId = NewType("PrincipalId", str)
"""The id of a principal: a user, `<provider>~<subject>` (e.g. `oidc~4f1c…`), or a role, `role:<id>`."""

SYSTEM = PrincipalId("system~lakewarden")
ROLE_PREFIX = "role:"


def role_principal(role_id: object) -> PrincipalId:
    """The principal id of a role: `role:<id>`."""
    return PrincipalId(f"{ROLE_PREFIX}{role_id}")


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, whose token is verified. Privileges are those of a `Principal`.

    `name` and `email` come from the token and are only used to register the user. `token_roles` are the roles in the
    token; in a project they count as its roles with that source. `assumed_role` is the id of the role that the caller
    wants to act as (x-assume-role); `tenants.access` checks it. Audit and events call the caller `actor`.
    """

    id: PrincipalId
    name: str | None = None
    email: str | None = None
    kind: Literal["human", "application"] = "application"
    token_roles: tuple[str, ...] = ()
    assumed_role: str | None = None

    @property
    def provider(self) -> str:
        """The id of the identity provider that issued the token."""
        return self.id.partition("~")[0]

    @property
    def owner(self) -> PrincipalId:
        """The owner of what the caller creates. With an assumed role it is the role, so its members keep the object if
        the caller leaves the role.
        """
        return self.id if self.assumed_role is None else role_principal(self.assumed_role)

    @property
    def key(self) -> "CallerKey":
        """Everything that determines the caller's privileges; the key of the decision cache."""
        return (self.id, self.token_roles, self.assumed_role)


CallerKey = tuple[PrincipalId, tuple[str, ...], str | None]


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An `Idempotency-Key`; `fingerprint` identifies its request, `attempt` this execution of the request."""

    key: UUID
    fingerprint: str
    attempt: UUID


@dataclass(frozen=True, slots=True)
class Allowed:
    """An allowed decision, and the privileges because of which it was allowed."""

    action: str
    object_type: str
    object_id: str
    project_id: str | None
    privileges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A denied decision on an object that exists."""

    action: str
    object_type: str
    object_id: str
    project_id: str | None
    reason: str


@dataclass(slots=True)
class Trail:
    """What is learned about a request while it runs, for the statistics and the audit after its end.

    `authorize` notes project and warehouse of the first object that has them, all allowed decisions, and the last
    denied one.
    """

    project_id: str | None = None
    warehouse_id: str | None = None
    allowed: list[Allowed] = field(default_factory=list)
    refused: Refused | None = None


@dataclass(frozen=True, slots=True)
class RequestContext:
    caller: Caller
    request_id: str
    user_agent: str = ""
    project_id: str | None = None
    idempotency: IdempotencyKey | None = None
    trail: Trail = field(default_factory=Trail, compare=False, repr=False)
