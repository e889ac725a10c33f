"""The models above the catalog: server, projects, warehouses, users, roles and tag definitions."""

from tenants.models.left_location import LeftLocation
from tenants.models.project import Project
from tenants.models.reachable_location import ReachableLocation
from tenants.models.role import Role
from tenants.models.server import Server
from tenants.models.tag_definition import TagDefinition
from tenants.models.user import User
from tenants.models.warehouse import Warehouse

__all__ = ["LeftLocation", "Project", "ReachableLocation", "Role", "Server", "TagDefinition", "User", "Warehouse"]
