"""The authorizer that allows every authenticated caller everything."""

import logging
from collections.abc import Sequence

from lakewarden.authz.interface import ObjectRef, Principal
from lakewarden.authz.model import Privilege
from lakewarden.context import PrincipalId

logger = logging.getLogger(__name__)

_EVERYTHING = frozenset(Privilege)


class AllowAllAuthorizer:
    def __init__(self) -> None:
        logger.warning(
            "Authorization is off (authorization.backend = allow-all): every authenticated caller may do everything"
        )

    def privileges(self, principal: Principal, chain: Sequence[ObjectRef]) -> frozenset[Privilege]:  # noqa: ARG002 the contract's arguments
        return _EVERYTHING

    def principals(self, principal: Principal) -> Sequence[PrincipalId]:
        return [principal.id, *principal.roles]
