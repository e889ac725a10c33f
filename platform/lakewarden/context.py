"""What one request carries through all layers: the caller, the project, the request id; never a global."""

from dataclasses import dataclass, field
from typing import Literal, NewType
from uuid import UUID

PrincipalId = NewType("PrincipalId", str)
"""The id of a principal: a user, `<provider>~<subject>` (e.g. `oidc~4f1c…`), or a role, `role:<id>`."""

SYSTEM = PrincipalId("system~lakewarden")
ROLE_PREFIX = "role:"


def role_principal(role_id: object) -> PrincipalId:
    """A role as a principal: `role:<id>`."""
    return PrincipalId(f"{ROLE_PREFIX}{role_id}")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent the request, once their token was verified. Their privileges are those of a `Principal`.

    `name` and `email` are what the token says, for provisioning only. `token_roles` are names that the identity
    provider gives them; in a project they stand for its roles of that source. `assumed_role` is the id of the role
    that the caller asks to act as; it is checked when the principal is determined (`tenants.access`).
    The audit and the events call the caller `actor`.
    """

    id: PrincipalId
    name: str | None = None
    email: str | None = None
    kind: Literal["human", "application"] = "application"
    token_roles: tuple[str, ...] = ()
    assumed_role: str | None = None

    @property
    def provider(self) -> str:
        """The id of the identity provider that the token came from."""
        return self.id.partition("~")[0]

    @property
    def owner(self) -> PrincipalId:
        """Who owns what the caller creates: the role that they act as, so that nothing is left to who leaves it."""
        return self.id if self.assumed_role is None else role_principal(self.assumed_role)

    @property
    def key(self) -> "CallerKey":
        """Everything that decides what the caller may do; the key of the decision cache."""
        return (self.id, self.token_roles, self.assumed_role)


CallerKey = tuple[PrincipalId, tuple[str, ...], str | None]


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A caller's key; `fingerprint` is of the request that it belongs to, `attempt` is this very execution of it."""

    key: UUID
    fingerprint: str
    attempt: UUID


@dataclass(frozen=True, slots=True)
class Allowed:
    """What `authorize` allowed, and the privileges that decided."""

    action: str
    object_type: str
    object_id: str
    project_id: str | None
    privileges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """What `authorize` did not allow, on an object that it had before it."""

    action: str
    object_type: str
    object_id: str
    project_id: str | None
    reason: str


@dataclass(slots=True)
class Trail:
    """What a request turned out to be about, for those who count and audit it when it is over.

    `authorize` notes the project and the warehouse of the first object that was found in one, all that it allowed,
    and the last refusal.
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
