"""The names of users and roles, for whoever may read the ids."""

from collections.abc import Iterable

from lakewarden.context import ROLE_PREFIX, PrincipalId
from tenants.models import Role, User


def of(principals: Iterable[PrincipalId]) -> dict[PrincipalId, str]:
    """The name of each that exists; two statements, however many there are."""
    wanted = set(principals)
    roles = {each.removeprefix(ROLE_PREFIX) for each in wanted if each.startswith(ROLE_PREFIX)}
    users = wanted - {f"{ROLE_PREFIX}{each}" for each in roles}
    found = {role.principal: role.name for role in Role.objects.filter(id__in=roles)}
    known = User.objects.filter(id__in=users, deleted_at__isnull=True).values_list("id", "name")
    return found | {PrincipalId(identifier): name for identifier, name in known}
