"""Bootstraps the server: the default project and the first administrator. Works once, unless it is reopened."""

from django.db.models import F
from django.utils import timezone

from lakewarden import config
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.db_transaction import changing
from lakewarden.errors import BadRequest
from lakewarden.events.change_recording import Change, record
from lakewarden.names import match_key
from tenants.access import SERVER, project_chain
from tenants.models import Project, Server
from tenants.models.project import DEFAULT_PROJECT_ID, first_epoch
from tenants.services import users

DEFAULT_PROJECT_NAME = "Default Project"


class AlreadyBootstrapped(BadRequest):
    """The server has an administrator. Status and type are those of the API that this one is compatible with."""

    wire_type = "CatalogAlreadyBootstrapped"


def this() -> Server:
    return Server.this()


def is_bootstrapped() -> bool:
    return Server.objects.filter(bootstrapped_at__isnull=False).exists()


def bootstrap(admin: Caller, context: RequestContext, *, is_operator: bool = False) -> Server:
    """Register `admin` as a user and make them administrator of the server; `is_operator`: operator, for automation.

    An operator may do everything in all projects. Raises AlreadyBootstrapped if the server is bootstrapped and was not
    reopened, Forbidden for a deleted user.
    """
    privilege = Privilege.OPERATOR if is_operator else Privilege.ADMIN
    with changing():
        server = Server.objects.select_for_update().get(pk=Server.this().pk)
        if server.bootstrapped_at is not None:
            raise AlreadyBootstrapped(
                "The server is bootstrapped already: its administrators can grant further privileges"
            )
        server.bootstrapped_at = timezone.now()
        server.save(update_fields=["bootstrapped_at"])
        users.register(admin, context)
        users.refresh(admin, context)
        ledger.give([SERVER], [(admin.id, privilege)], granted_by=context.caller.id)
        if config.current().server.enable_default_project:
            _make_default_project(admin, granted_by=context.caller.id)
        Project.objects.update(authz_epoch=F("authz_epoch") + 1)  # the new privilege counts in every project
        data = {"admin": admin.id, "privilege": privilege.value}
        record(Change("bootstrapServer", "server", str(server.id), data=data), context)
    return server


def reopen_bootstrap(context: RequestContext) -> bool:
    """Allow one more call of bootstrap, which adds an administrator. Returns False if it was open already.

    Until that call, anybody with a valid token can become administrator. So only the command line offers it, to
    whoever operates the server.
    """
    with changing():
        server = Server.objects.select_for_update().get(pk=Server.this().pk)
        if server.bootstrapped_at is None:
            return False
        server.bootstrapped_at = None
        server.save(update_fields=["bootstrapped_at"])
        record(Change("reopenBootstrap", "server", str(server.id)), context)
    return True


def _make_default_project(admin: Caller, *, granted_by: PrincipalId) -> None:
    """Create the default project if it does not exist, and make `admin` its administrator."""
    described = {"name": DEFAULT_PROJECT_NAME, "name_key": match_key(DEFAULT_PROJECT_NAME)}
    project, _ = Project.objects.get_or_create(
        id=DEFAULT_PROJECT_ID, defaults={**described, "authz_epoch": first_epoch()}
    )
    ledger.give(project_chain(project.id), [(admin.id, Privilege.PROJECT_ADMIN)], granted_by=granted_by)
