"""Counts what the application in this process asks Postgres and the authorizer; any bearer is who he says he is."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import psycopg

if TYPE_CHECKING:
    from lakewarden.authn.interface import Principal
    from lakewarden.authz.interface import Authorizer, ObjectRef, Subject
    from lakewarden.authz.model import Privilege
    from lakewarden.context import PrincipalId

A = TypeVar("A")


@dataclass
class Counts:
    """What was asked since the last `reset`: statements of Postgres (BEGIN and COMMIT apart), and the authorizer."""

    statements: int = 0
    questions: int = 0

    def reset(self) -> None:
        self.statements = self.questions = 0


class _AnyName:
    """An identity provider for which every token is its holder's name."""

    def authenticate(self, authorization: str | None) -> "Principal":
        from lakewarden.authn.interface import Principal  # noqa: PLC0415 needs settings

        name = (authorization or "").removeprefix("Bearer ")
        return Principal(
            id=f"oidc~{name}", name=name, email=None, kind="human", issuer="benchmark", expires_at=time.time() + 3600
        )

    def find_known(self, authorization: str) -> "Principal | None":
        return self.authenticate(authorization)


@dataclass(frozen=True)
class _Counting:
    inner: "Authorizer"
    counts: Counts

    def privileges(self, subject: "Subject", chain: "Sequence[ObjectRef]") -> "frozenset[Privilege]":
        self.counts.questions += 1
        return self.inner.privileges(subject, chain)

    def principals(self, subject: "Subject") -> "Sequence[PrincipalId]":
        self.counts.questions += 1
        return self.inner.principals(subject)


def install(counts: Counts) -> None:
    """Have every statement of this process and every question to its authorizer counted from now on."""
    from lakewarden import backends  # noqa: PLC0415 needs settings

    asked, provider = _Counting(backends.authorizer(), counts), _AnyName()
    backends.authorizer = lambda: asked  # type: ignore[assignment]
    backends.authenticator = lambda: provider  # type: ignore[assignment]
    for cursor in (psycopg.Cursor, psycopg.AsyncCursor):
        cursor.execute = _counted(cursor.execute, counts)  # type: ignore[assignment,method-assign]


def _counted(execute: Callable[..., A], counts: Counts) -> Callable[..., A]:
    def counting(*arguments: object, **options: object) -> A:
        counts.statements += 1
        return execute(*arguments, **options)

    return counting
