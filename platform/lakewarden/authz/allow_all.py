"""The authorizer that keeps grants, but allows everything to everybody who is authenticated."""

import logging
from collections.abc import Sequence

from lakewarden.authz.database.authorizer import DatabaseAuthorizer
from lakewarden.authz.interface import ObjectRef
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId

logger = logging.getLogger(__name__)


class AllowAllAuthorizer(DatabaseAuthorizer):
    def __init__(self) -> None:
        logger.warning(
            "Authorization is off (authorization.backend = allow-all): every authenticated caller may do everything"
        )

    def privileges(self, principal: PrincipalId, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:  # noqa: ARG002 the contract's arguments
        return frozenset({Privilege.ADMIN, Privilege.OWNERSHIP})
