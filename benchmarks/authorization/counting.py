"""Counts what the application in this process asks Postgres, the authorizer and OpenFGA; every bearer is believed."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import psycopg

if TYPE_CHECKING:
    from lakewarden.authn.interface import VerifiedToken
    from lakewarden.authz.interface import Authorizer, ObjectRef, Principal
    from lakewarden.authz.model import Privilege
    from lakewarden.context import PrincipalId

A = TypeVar("A")


@dataclass
class Counts:
    """Since the last `reset`: statements to Postgres (BEGIN and COMMIT apart), questions to the authorizer, HTTP calls
    to OpenFGA.
    """

    statements: int = 0
    questions: int = 0
    calls: int = 0

    def reset(self) -> None:
        self.statements = self.questions = self.calls = 0

    def note_statement(self) -> None:
        self.statements += 1

    def note_call(self) -> None:
        self.calls += 1


class _AnyName:
    """An identity provider for which every token is its holder's name."""

    def authenticate(self, authorization: str | None, *, source: str = "") -> "VerifiedToken":  # noqa: ARG002 the contract's
        from lakewarden.authn.interface import VerifiedToken  # noqa: PLC0415 needs settings

        name = (authorization or "").removeprefix("Bearer ")
        return VerifiedToken(
            id=f"oidc~{name}", name=name, email=None, kind="human", issuer="benchmark", expires_at=time.time() + 3600
        )

    def find_known(self, authorization: str) -> "VerifiedToken | None":
        return self.authenticate(authorization)


@dataclass(frozen=True)
class _Counting:
    inner: "Authorizer"
    counts: Counts

    def privileges(self, principal: "Principal", chain: "Sequence[ObjectRef]") -> "frozenset[Privilege]":
        self.counts.questions += 1
        return self.inner.privileges(principal, chain)

    def principals(self, principal: "Principal") -> "Sequence[PrincipalId]":
        self.counts.questions += 1
        return self.inner.principals(principal)


def install(counts: Counts) -> None:
    """Have all that this process asks counted from now on."""
    from lakewarden import backends, config  # noqa: PLC0415 needs settings

    asked, provider = _Counting(backends.authorizer(), counts), _AnyName()
    backends.authorizer = lambda: asked  # type: ignore[assignment]
    backends.authenticator = lambda: provider  # type: ignore[assignment]
    for cursor in (psycopg.Cursor, psycopg.AsyncCursor):
        cursor.execute = _noted(cursor.execute, counts.note_statement)  # type: ignore[assignment,method-assign]
    from lakewarden.hot.sessions import Session  # noqa: PLC0415 needs settings

    Session.fetch = _noted(Session.fetch, counts.note_statement)  # type: ignore[method-assign]
    if config.current().authorization.backend == "openfga":
        from openfga_sdk.sync.rest import RESTClientObject  # noqa: PLC0415 it takes time to load

        # everything that the SDK sends goes through it, and so do our own streamed lists
        RESTClientObject.request = _noted(RESTClientObject.request, counts.note_call)  # type: ignore[method-assign]


def _noted(ask: Callable[..., A], note: Callable[[], None]) -> Callable[..., A]:
    def asking(*arguments: object, **options: object) -> A:
        note()
        return ask(*arguments, **options)

    return asking
