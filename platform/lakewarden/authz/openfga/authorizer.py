"""The authorizer that asks OpenFGA.

OpenFGA stores grants and memberships. The hierarchy of objects is not stored there: each check sends the parents of
the object as contextual tuples.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Final

from lakewarden.authz.actions import SHOWN_WITH_PROJECT, TABULAR_TYPES, ObjectType
from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.ledger import change_log, descendant_grants
from lakewarden.authz.model import Level, Privilege, effective
from lakewarden.authz.openfga import drain, store
from lakewarden.authz.openfga.client import MOST_CONTEXTUAL, OpenFga
from lakewarden.authz.openfga.language import ASSIGNEE, privileges_of
from lakewarden.authz.openfga.tuples import RelationTuple, asked_as, id_of, object_of, parents_of
from lakewarden.config import OpenFgaConfig
from lakewarden.context import PrincipalId, role_principal

_MOST_SETTLED_S: Final = 5.0
"""How long a check waits at most until earlier changes are applied to OpenFGA, in seconds."""


class OpenFgaAuthorizer:
    """One instance for the process; thread-safe."""

    def __init__(self, settings: OpenFgaConfig) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._asked: tuple[str, OpenFga] | None = None
        self._drain = drain.Drain(lambda: self._client(store.standing(settings)), patience_s=settings.timeout_s)
        change_log.follow(self.settle)

    def privileges(self, principal: Principal, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:
        """See `Authorizer.privileges`. Changes of the caller's own open transaction do not count yet."""
        client = self.settle()
        user, roles = asked_as(principal)
        target, parents = chain[-1], parents_of(chain)
        asked = [privilege.value for privilege in privileges_of(target.type) if privilege is not Privilege.SEE]
        granted: set[Privilege] = set()
        # each privilege comes from a single grant, so roles may be divided among several requests
        for some in _parts(roles, MOST_CONTEXTUAL - len(parents)):
            names = client.held(user, asked, object_of(target), context=[*parents, *some])
            granted |= {Privilege(name) for name in names}
        held = effective([Level(target.type, granted, managed=True)])
        if Privilege.SEE in held or target.type in TABULAR_TYPES:
            return held
        # a privilege on anything inside an object allows seeing it; whoever sees a project sees its roles and tags
        shown = chain[-2] if target.type in SHOWN_WITH_PROJECT else target
        path = [ref.id for ref in chain[1 : chain.index(shown) + 1]]
        if not descendant_grants.anything_in(_principals(client, principal), path):
            return held
        seen = effective([Level(shown.type, {Privilege.SEE}), *([Level(target.type)] if shown is not target else [])])
        return held | seen

    def principals(self, principal: Principal) -> Sequence[PrincipalId]:
        """See `Authorizer.principals`."""
        return _principals(self.settle(), principal)

    def settle(self) -> OpenFga:
        """Apply all committed changes to the store and return its client. Raises Unavailable."""
        known = store.standing(self._settings)
        client = self._client(known)
        if known is not None and known.is_pending:
            self._drain.settle(within_s=_MOST_SETTLED_S)
        return client

    def is_lost(self) -> bool:
        """Whether OpenFGA no longer has the store that was asked last, for which it goes on to answer for a while.

        Raises Unavailable. The database is not asked.
        """
        with self._lock:
            asked = self._asked
        return asked is not None and not asked[1].has_store()

    def close(self) -> None:
        """Close all connections; the authorizer opens new ones if it is used again."""
        self._drain.close()
        with self._lock:
            if self._asked is not None:
                self._asked[1].close()
                self._asked = None

    def _client(self, known: store.Standing | None) -> OpenFga:
        """The client, cached while the store stays the same.

        It uses the model of this version, not a newer one in the store.
        """
        with self._lock:
            if self._asked is None or known is None or not known.is_filled or known.store_id != self._asked[0]:
                found = store.current(self._settings)
                self._asked = found.id, OpenFga(self._settings, found)
            return self._asked[1]


def _principals(client: OpenFga, principal: Principal) -> list[PrincipalId]:
    """The principal and all their roles, each once."""
    found = _listed(client, principal, ASSIGNEE, ObjectType.ROLE)
    return list(dict.fromkeys([principal.id, *principal.roles, *map(role_principal, found)]))


def _listed(client: OpenFga, principal: Principal, relation: str, kind: ObjectType) -> Iterator[str]:
    user, roles = asked_as(principal)
    for some in _parts(roles, MOST_CONTEXTUAL):
        for name in client.objects(user, relation, kind.value, context=some):
            identifier = id_of(name)
            if identifier is not None:
                yield identifier


def _parts(roles: list[RelationTuple], size: int) -> Iterator[list[RelationTuple]]:
    """Divide the roles into parts of `size`; one empty part if there are none."""
    for start in range(0, max(len(roles), 1), size):
        yield roles[start : start + size]
