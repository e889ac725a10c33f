"""Deletes and restores users: a restored user has none of the earlier rights. Also locks users against deletion."""

from collections.abc import Iterable

from django.db.models import F
from django.utils import timezone

from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants, members
from lakewarden.authz.ledger.models import Grant, Membership
from lakewarden.context import ROLE_PREFIX, Caller, PrincipalId, RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest, Conflict, NoSuchUser
from lakewarden.events.change_recording import Change, record
from lakewarden.prepared_statements import fetch
from tenants.access import SERVER
from tenants.models import Project, Role, Server, User

DELETED_NAME = "Deleted User"


class LastAdministrator(Conflict):
    """The user is the server's only administrator."""

    wire_type = "LastAdministratorException"


def delete(granted: Granted[User]) -> None:
    """Remove the user's name, email, grants and memberships; the row with their id stays.

    Raises LastAdministrator for the only administrator of the server, NoSuchUser if they were deleted meanwhile.
    """
    user, context = granted.target, granted.context
    with changing():
        ensure_other_administrator(PrincipalId(user.id))
        gone = User.objects.filter(id=user.id, deleted_at__isnull=True).update(
            name=DELETED_NAME,
            email=None,
            deleted_at=timezone.now(),
            updated_at=timezone.now(),
            last_updated_with=User.UpdatedWith.UPDATE_ENDPOINT,
        )
        if not gone:
            raise NoSuchUser(f"User does not exist: {user.id}")
        _forget_rights(PrincipalId(user.id))
        record(Change("deleteUser", "user", user.id), context)


def bring_back(described: Caller, context: RequestContext) -> User:
    """Restore a deleted user as a new one: all grants and memberships of the id are removed.

    Roles that their identity provider names count again.
    """
    with changing():
        user = User.objects.select_for_update().get(id=described.id)
        if user.deleted_at is None:
            return user  # another request restored them first
        _forget_rights(described.id)
        user.name, user.email, user.user_type = described.name or described.id, described.email, described.kind
        user.deleted_at, user.updated_at = None, timezone.now()
        user.last_updated_with = User.UpdatedWith.CREATE_ENDPOINT
        user.save()
        record(Change("createUser", "user", user.id, data={"type": described.kind, "was-deleted": True}), context)
    return user


def ensure_other_administrator(principal: PrincipalId) -> None:
    """Raises LastAdministrator if `principal` is the only administrator of the server.

    Until the transaction ends, no other one can remove an administrator.
    """
    Server.objects.select_for_update().get(singleton=True)
    holders = {holder for holder, _ in grants.on(SERVER)}
    if principal not in holders:
        return
    if not User.objects.filter(id__in=holders - {principal}, deleted_at__isnull=True).exists():
        raise LastAdministrator(
            f"The user {principal} is the server's last administrator: make another one administrator first"
        )


def ensure_present(users: Iterable[PrincipalId]) -> None:
    """Raises NoSuchUser for an unknown user, BadRequest for a deleted one.

    None of them can be deleted until the transaction ends.
    """
    wanted = list(users)
    known = hold(wanted)
    for user in wanted:
        if user not in known:
            raise NoSuchUser(f"User does not exist: {user}")
        if known[user]:
            raise BadRequest(f"The user {user} was deleted and cannot be granted privileges")


def remaining(principals: Iterable[PrincipalId]) -> list[PrincipalId]:
    """Those of the users and roles that are not deleted; none can be deleted until the transaction ends."""
    asked = sorted(principals)
    roles = [each.removeprefix(ROLE_PREFIX) for each in asked if each.startswith(ROLE_PREFIX)]
    found = Role.objects.filter(id__in=roles).order_by("id").select_for_update(no_key=True) if roles else ()
    kept = {role.principal for role in found}
    is_deleted = hold(each for each in asked if not each.startswith(ROLE_PREFIX))
    return [each for each in asked if each in kept or not (each.startswith(ROLE_PREFIX) or is_deleted.get(each))]


def hold(users: Iterable[PrincipalId]) -> dict[str, bool]:
    """The known ones of `users` and whether each is deleted; none can be deleted until the transaction ends.

    A change of somebody's rights calls it before it locks the project's row (see `lakewarden.db_transaction`).
    """
    rows = fetch(
        "select id, deleted_at is not null from lakewarden_user where id = any(%s::text[]) order by id for share",
        [list(users)],
    )
    return dict(rows)


def _forget_rights(principal: PrincipalId) -> None:
    """Remove grants and memberships, and invalidate every cached decision about the user.

    That includes decisions by roles that only the user's token names: projects with a role of their identity provider.
    The caller has locked the user's row, so nothing can be granted to the user meanwhile.
    """
    concerned = {
        *Grant.objects.filter(principal_id=principal).values_list("project_id", flat=True).distinct(),
        *Membership.objects.filter(member_id=principal).values_list("project_id", flat=True).distinct(),
    }
    bound = Role.objects.filter(provider_id=principal.partition("~")[0]).values_list("project_id", flat=True)
    projects = Project.objects.order_by("id")
    if None not in concerned:
        projects = projects.filter(id__in={*concerned, *bound})
    # locked in the order of ids: otherwise two deletions at the same time could deadlock
    found = [project.id for project in projects.select_for_update(no_key=True)]
    Project.objects.filter(id__in=found).update(authz_epoch=F("authz_epoch") + 1)
    grants.forget_principal(principal)
    members.forget_principal(principal)
