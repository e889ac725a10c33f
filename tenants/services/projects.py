"""Projects: created by operators, listed to those who may see them."""

from django.db import IntegrityError
from django.db.models import F

from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.authz.model import Privilege
from lakewarden.errors import AlreadyExists, InvalidArgument
from lakewarden.events.changes import Change, record
from lakewarden.ids import new_id
from lakewarden.names import check_name, match_key
from lakewarden.transactions import changing
from tenants.access import project_chain
from tenants.models import Project, Server
from tenants.models.project import PROJECT_ID


def create(granted: Granted[Server], name: str, *, project_id: str | None) -> Project:
    """Raises InvalidArgument for a bad name or id, AlreadyExists when either is taken (without regard to case)."""
    check_name(name, what="project")
    if project_id is not None and not PROJECT_ID.fullmatch(project_id):
        raise InvalidArgument(f"Invalid project id {project_id!r}: 1 to 128 letters, digits, '-' and '_' are allowed")
    context = granted.context
    project = Project(id=project_id or str(new_id()), name=name, name_key=match_key(name))
    try:
        with changing():
            project.save(force_insert=True)
            ledger.give(
                project_chain(project.id), [(context.actor.id, Privilege.PROJECT_ADMIN)], granted_by=context.actor.id
            )
            record(Change("createProject", "project", project.id, project.id, {"name": name}), context)
    except IntegrityError as error:
        raise AlreadyExists(f"A project with the name {name!r} or the id {project.id!r} exists already") from error
    return project


def bump_epoch(project_id: str) -> None:
    """Make every decision that is cached for the project stale; part of each transaction that changes a right."""
    Project.objects.filter(id=project_id).update(authz_epoch=F("authz_epoch") + 1)
