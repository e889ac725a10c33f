"""What one request carries through all layers: who asks, in which project, under which id; never a global."""

from dataclasses import dataclass, field
from typing import Literal, NewType
from uuid import UUID

PrincipalId = NewType("PrincipalId", str)
"""A user, `<provider>~<subject>` (e.g. `oidc~4f1c…`), or a role, `role:<id>`."""

SYSTEM = PrincipalId("system~lakewarden")
ROLE_PREFIX = "role:"


def role_principal(role_id: object) -> PrincipalId:
    """A role as a principal: `role:<id>`."""
    return PrincipalId(f"{ROLE_PREFIX}{role_id}")


@dataclass(frozen=True, slots=True)
class Actor:
    """The authenticated caller; name and email are what the token says, for provisioning only.

    `token_roles` are names that the identity provider gives him; in a project they are its roles of that source.
    `assumed_role` is the id of the one role that he asks to act as; whether he may is found out where it counts.
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
    def caller(self) -> "Caller":
        """All that decides what he may do, as a key."""
        return (self.id, self.token_roles, self.assumed_role)


Caller = tuple[PrincipalId, tuple[str, ...], str | None]


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
    actor: Actor
    request_id: str
    user_agent: str = ""
    project_id: str | None = None
    idempotency: IdempotencyKey | None = None
    trail: Trail = field(default_factory=Trail, compare=False, repr=False)
