"""The actions on each type of object; the values are the management API's action names."""

from enum import Enum, StrEnum


class ObjectType(StrEnum):
    SERVER = "server"
    PROJECT = "project"
    ROLE = "role"
    TAG_DEFINITION = "tag-definition"
    WAREHOUSE = "warehouse"
    NAMESPACE = "namespace"
    TABLE = "table"
    VIEW = "view"
    GENERIC_TABLE = "generic-table"


TABULAR_TYPES = (ObjectType.TABLE, ObjectType.VIEW, ObjectType.GENERIC_TABLE)
"""The types of objects that lie in a namespace, share its names, and have nothing inside."""


SHOWN_WITH_PROJECT = (ObjectType.ROLE, ObjectType.TAG_DEFINITION)
"""The types of objects that whoever sees the project sees."""


class ServerAction(Enum):
    CREATE_PROJECT = "create_project"
    LIST_PROJECTS = "list_projects"
    LIST_USERS = "list_users"
    PROVISION_USERS = "provision_users"
    UPDATE_USERS = "update_users"
    DELETE_USERS = "delete_users"
    READ_GRANTS = "read_grants"
    READ_AUDIT = "read_audit"
    READ_EVENT_DELIVERY = "read_event_delivery"
    CONTROL_EVENT_DELIVERY = "control_event_delivery"


class ProjectAction(Enum):
    GET_METADATA = "get_metadata"
    INCLUDE_IN_LIST = "include_in_list"
    RENAME = "rename"
    DELETE = "delete"
    CREATE_WAREHOUSE = "create_warehouse"
    LIST_WAREHOUSES = "list_warehouses"
    CREATE_ROLE = "create_role"
    LIST_ROLES = "list_roles"
    SEARCH_ROLES = "search_roles"
    CREATE_TAG = "create_tag"
    LIST_TAGS = "list_tags"
    GET_ENDPOINT_STATISTICS = "get_endpoint_statistics"
    GET_TASK_QUEUE_CONFIG = "get_task_queue_config"
    MODIFY_TASK_QUEUE_CONFIG = "modify_task_queue_config"
    GET_TASKS = "get_project_tasks"
    CONTROL_TASKS = "control_project_tasks"
    READ_GRANTS = "read_grants"
    READ_AUDIT = "read_audit"


class RoleAction(Enum):
    READ = "read"
    READ_METADATA = "read_metadata"
    UPDATE = "update"
    DELETE = "delete"
    READ_ASSIGNMENTS = "read_role_assignments"
    MANAGE_ASSIGNMENTS = "manage_role_assignments"
    UPDATE_SOURCE_SYSTEM = "update_source_system"


class TagAction(Enum):
    """On tag definitions."""

    READ = "read"
    UPDATE = "update"
    DELETE = "delete"
    APPLY = "apply"
    REMOVE = "remove"
    READ_ATTACHMENTS = "read_attachments"
    READ_GRANTS = "read_grants"


class WarehouseAction(Enum):
    GET_METADATA = "get_metadata"
    GET_CONFIG = "get_config"
    INCLUDE_IN_LIST = "include_in_list"
    USE = "use"
    LIST_NAMESPACES = "list_namespaces"
    LIST_EVERYTHING = "list_everything"
    CREATE_NAMESPACE = "create_namespace"
    ACCEPT_MOVED_NAMESPACE = "accept_moved_namespace"
    RENAME = "rename"
    DELETE = "delete"
    FORCE_DROP = "force_drop"
    ACTIVATE = "activate"
    DEACTIVATE = "deactivate"
    UPDATE_STORAGE = "update_storage"
    UPDATE_STORAGE_CREDENTIAL = "update_storage_credential"
    SET_PROTECTION = "set_protection"
    SET_CONTRACT = "set_contract"
    SET_FORMAT_VERSION_POLICY = "set_format_version_policy"
    LIST_DELETED_TABULARS = "list_deleted_tabulars"
    MODIFY_SOFT_DELETION = "modify_soft_deletion"
    GET_ENDPOINT_STATISTICS = "get_endpoint_statistics"
    GET_TASK_QUEUE_CONFIG = "get_task_queue_config"
    MODIFY_TASK_QUEUE_CONFIG = "modify_task_queue_config"
    GET_ALL_TASKS = "get_all_tasks"
    CONTROL_ALL_TASKS = "control_all_tasks"
    MANAGE_TAGS = "manage_tags"
    READ_GRANTS = "read_grants"


class NamespaceAction(Enum):
    GET_METADATA = "get_metadata"
    INCLUDE_IN_LIST = "include_in_list"
    LIST_NAMESPACES = "list_namespaces"
    LIST_TABLES = "list_tables"
    LIST_VIEWS = "list_views"
    LIST_GENERIC_TABLES = "list_generic_tables"
    LIST_EVERYTHING = "list_everything"
    CREATE_NAMESPACE = "create_namespace"
    CREATE_TABLE = "create_table"
    CREATE_VIEW = "create_view"
    CREATE_GENERIC_TABLE = "create_generic_table"
    UPDATE_PROPERTIES = "update_properties"
    SET_PROTECTION = "set_protection"
    SET_CONTRACT = "set_contract"
    DELETE = "delete"
    FORCE_DROP = "force_drop"
    FORCE_DROP_ALL = "force_drop_all"
    UNDROP = "undrop"
    MOVE = "move"
    ACCEPT_MOVED_NAMESPACE = "accept_moved_namespace"
    MANAGE_TAGS = "manage_tags"
    READ_GRANTS = "read_grants"


class TableAction(Enum):
    GET_METADATA = "get_metadata"
    INCLUDE_IN_LIST = "include_in_list"
    READ_DATA = "read_data"
    WRITE_DATA = "write_data"
    COMMIT = "commit"
    DROP = "drop"
    FORCE_DROP = "force_drop"
    UNDROP = "undrop"
    RENAME = "rename"
    SET_PROTECTION = "set_protection"
    SET_CONTRACT = "set_contract"
    GET_TASKS = "get_tasks"
    CONTROL_TASKS = "control_tasks"
    MANAGE_TAGS = "manage_tags"
    READ_GRANTS = "read_grants"


class ViewAction(Enum):
    GET_METADATA = "get_metadata"
    INCLUDE_IN_LIST = "include_in_list"
    SELECT = "select"
    COMMIT = "commit"
    DROP = "drop"
    FORCE_DROP = "force_drop"
    UNDROP = "undrop"
    RENAME = "rename"
    SET_PROTECTION = "set_protection"
    SET_CONTRACT = "set_contract"
    GET_TASKS = "get_tasks"
    CONTROL_TASKS = "control_tasks"
    MANAGE_TAGS = "manage_tags"
    READ_GRANTS = "read_grants"


class GenericTableAction(Enum):
    """Without `commit`: the catalog arbitrates no changes of these tables."""

    GET_METADATA = "get_metadata"
    INCLUDE_IN_LIST = "include_in_list"
    READ_DATA = "read_data"
    WRITE_DATA = "write_data"
    DROP = "drop"
    FORCE_DROP = "force_drop"
    UNDROP = "undrop"
    RENAME = "rename"
    SET_PROTECTION = "set_protection"
    GET_TASKS = "get_tasks"
    CONTROL_TASKS = "control_tasks"
    MANAGE_TAGS = "manage_tags"
    READ_GRANTS = "read_grants"


class UserAction(Enum):
    READ = "read"
    UPDATE = "update"
    DELETE = "delete"
    READ_ASSIGNMENTS = "read_role_assignments"


TabularAction = TableAction | ViewAction | GenericTableAction
CatalogAction = WarehouseAction | NamespaceAction | TabularAction
Action = ServerAction | ProjectAction | RoleAction | TagAction | CatalogAction | UserAction

ACTIONS: dict[ObjectType, tuple[Action, ...]] = {
    ObjectType.SERVER: tuple(ServerAction),
    ObjectType.PROJECT: tuple(ProjectAction),
    ObjectType.ROLE: tuple(RoleAction),
    ObjectType.TAG_DEFINITION: tuple(TagAction),
    ObjectType.WAREHOUSE: tuple(WarehouseAction),
    ObjectType.NAMESPACE: tuple(NamespaceAction),
    ObjectType.TABLE: tuple(TableAction),
    ObjectType.VIEW: tuple(ViewAction),
    ObjectType.GENERIC_TABLE: tuple(GenericTableAction),
}
"""The actions of each type of object. Users are not in it: the right to act on users is granted on the server."""
