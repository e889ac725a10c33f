"""A warehouse on the object store in memory, whose profile must be known already."""

from lakewarden.authz.actions import ProjectAction
from lakewarden.context import RequestContext
from lakewarden.storage.profiles import parse_profile
from tenants import access
from tenants.models import Warehouse
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import warehouses


def made(context: RequestContext, name: str, **fields: str) -> Warehouse:
    granted = access.project(context, DEFAULT_PROJECT_ID, ProjectAction.CREATE_WAREHOUSE)
    profile = {"type": "bucket", "bucket": "one", "key-prefix": "lake", **fields}
    return warehouses.create(granted, name, profile=parse_profile(profile), delete_profile={"type": "hard"})
