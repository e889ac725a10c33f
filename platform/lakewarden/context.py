"""What one request carries through all layers: who asks, in which project, under which id; never a global."""

from dataclasses import dataclass
from typing import Literal, NewType
from uuid import UUID

PrincipalId = NewType("PrincipalId", str)
"""`<provider>~<subject>`, e.g. `oidc~4f1c…`."""

SYSTEM = PrincipalId("system~lakewarden")


@dataclass(frozen=True, slots=True)
class Actor:
    """The authenticated caller; name and email are what the token says, for provisioning only."""

    id: PrincipalId
    name: str | None = None
    email: str | None = None
    kind: Literal["human", "application"] = "application"


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A caller's key; `fingerprint` is of the request that it belongs to, `attempt` is this very execution of it."""

    key: UUID
    fingerprint: str
    attempt: UUID


@dataclass(frozen=True, slots=True)
class RequestContext:
    actor: Actor
    request_id: str
    user_agent: str = ""
    project_id: str | None = None
    idempotency: IdempotencyKey | None = None
