"""The rights of another principal on an object that the caller may see. Never used to authorize a request."""

from lakewarden import backends
from lakewarden.authz.actions import RoleAction
from lakewarden.authz.interface import Granted, Principal
from lakewarden.authz.model import Privilege
from permissions.privileges import NamedPrincipal, ensure_may_ask
from tenants import access


def held_on(granted: Granted[object], identity: NamedPrincipal | None) -> frozenset[Privilege]:
    """All privileges on the object of `identity` (None: the caller).

    Raises Forbidden if the caller may not ask about others, NoSuchRole for a role of another project than the
    object's. An unknown user holds nothing.
    """
    principal = _other(granted, identity)
    return granted.privileges if principal is None else backends.authorizer().privileges(principal, granted.chain)


def principal_on(granted: Granted[object], identity: NamedPrincipal | None) -> Principal:
    """`identity`, or the caller, with the roles that count on the object; raises as `held_on`."""
    project_id = granted.chain[1].id if len(granted.chain) > 1 else None
    return _other(granted, identity) or access.principal_of_caller(granted.context, project_id)


def _other(granted: Granted[object], identity: NamedPrincipal | None) -> Principal | None:
    context = granted.context
    if identity is None or (identity.user == context.caller.id and context.caller.assumed_role is None):
        return None
    ensure_may_ask(granted.privileges, granted.ref.type)
    if identity.user:
        return access.principal_of(identity.user)
    project_id = granted.chain[1].id if len(granted.chain) > 1 else None
    role = access.role(context, identity.role, RoleAction.READ_METADATA, project_id=project_id)
    return access.principal_of(role.target.principal)
