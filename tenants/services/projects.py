"""Creates, renames and deletes projects, and holds the locks that changes of rights in a project need."""

from django.db import IntegrityError, connection
from django.db.models import ProtectedError
from django.utils import timezone

from lakewarden import quotas
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import epochs, members
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.db_transaction import changing
from lakewarden.errors import AlreadyExists, InvalidArgument, NoSuchProject, ProjectNotEmpty
from lakewarden.events.change_recording import Change, record
from lakewarden.ids import new_id
from lakewarden.names import check_name, match_key
from tenants.access import project_chain
from tenants.models import Project, Role, Server, TagDefinition, Warehouse
from tenants.models.project import PROJECT_ID, first_epoch

_GRAPH_LOCK = 0x6C6B7267  # advisory lock for each project: memberships of its roles are changed one at a time


def create(granted: Granted[Server], name: str, *, project_id: str | None) -> Project:
    """Create a project; the caller becomes its administrator.

    Raises InvalidArgument for an invalid name or id, AlreadyExists if the id or the name (ignoring case) is taken.
    """
    check_name(name, what="project")
    if project_id is not None and not PROJECT_ID.fullmatch(project_id):
        raise InvalidArgument(
            f"Invalid project id {project_id[:80]!r}: 1 to 128 letters, digits, '-' and '_' are allowed"
        )
    quotas.ensure_room("projects", Project.objects.all(), within="server")
    context = granted.context
    project = Project(id=project_id or str(new_id()), name=name, name_key=match_key(name), authz_epoch=first_epoch())
    try:
        with changing():
            project.save(force_insert=True)
            ledger.give_creator(project_chain(project.id), context.caller, Privilege.PROJECT_ADMIN)
            record(Change("createProject", "project", project.id, project.id, {"name": name}), context)
    except IntegrityError as error:
        raise AlreadyExists(f"A project with the name {name!r} or the id {project.id!r} exists already") from error
    return project


def rename(granted: Granted[Project], name: str) -> Project:
    """Rename the project; its current name changes nothing.

    Raises InvalidArgument for an invalid name, AlreadyExists for a taken one, NoSuchProject if it was deleted
    meanwhile.
    """
    check_name(name, what="project")
    try:
        with changing():
            project = _locked(granted.target)
            if project.name != name:
                before, project.name, project.name_key = project.name, name, match_key(name)
                project.updated_at = timezone.now()
                project.save(update_fields=["name", "name_key", "updated_at"])
                payload = {"name": name, "before": before}
                record(Change("renameProject", "project", project.id, project.id, payload), granted.context)
    except IntegrityError as error:
        raise AlreadyExists(f"A project with the name {name!r} exists already") from error
    return project


def delete(granted: Granted[Project]) -> None:
    """Delete a project that has no warehouses, with its roles, tag definitions, grants and memberships.

    Raises ProjectNotEmpty, and NoSuchProject if it was deleted meanwhile.
    """
    not_empty = ProjectNotEmpty(f"The project {granted.target.name!r} still has warehouses: delete them first")
    try:
        with changing():
            # every lock under which roles and rights are changed, in the global order (see
            # `lakewarden.db_transaction`):
            # otherwise a grant that is made at the same time would outlive the project, or the two would deadlock
            Server.objects.select_for_update().get(singleton=True)
            lock_graph(granted.target.id)
            for model in (TagDefinition, Role):
                list(model.objects.filter(project=granted.target).order_by("id").select_for_update().values_list("id"))
            project = _locked(granted.target)
            if Warehouse.objects.filter(project=project).exists():
                raise not_empty
            record(Change("deleteProject", "project", project.id, project.id, {"name": project.name}), granted.context)
            members.forget_project(project.id)
            ledger.forget_project(project.id)
            Role.objects.filter(project=project).delete()
            TagDefinition.objects.filter(project=project).delete()
            project.delete()
    except (ProtectedError, IntegrityError) as error:
        raise not_empty from error


def _locked(project: Project) -> Project:
    """The current row, locked until the transaction ends."""
    found = Project.objects.select_for_update().filter(id=project.id).first()
    if found is None:
        raise NoSuchProject(f"Project does not exist: {project.id}")
    return found


def bump_epoch(project_id: str) -> None:
    """Invalidate all cached decisions of the project, after a change that is not made through the ledger."""
    epochs.raise_in([project_id])


def hold(project_id: str | None) -> None:
    """Lock the project's row (None: all, for privileges on the server) against changes of rights until the end of the
    transaction.
    """
    rows = Project.objects.order_by("id").select_for_update(no_key=True)
    list((rows if project_id is None else rows.filter(id=project_id)).values_list("id"))


def lock_graph(project_id: str) -> None:
    """Until the transaction ends, no other transaction changes the memberships of the project's roles, creates or
    deletes a role.
    """
    with connection.cursor() as cursor:
        cursor.execute("select pg_advisory_xact_lock(%s, hashtext(%s))", [_GRAPH_LOCK, project_id])
