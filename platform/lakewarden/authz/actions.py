"""What can be done to which kind of object; the values are the management API's action names."""

from enum import Enum, StrEnum


class ObjectType(StrEnum):
    SERVER = "server"
    PROJECT = "project"
    WAREHOUSE = "warehouse"
    NAMESPACE = "namespace"
    TABLE = "table"
    VIEW = "view"


class ServerAction(Enum):
    CREATE_PROJECT = "create_project"
    LIST_USERS = "list_users"


class ProjectAction(Enum):
    GET_METADATA = "get_metadata"
    CREATE_WAREHOUSE = "create_warehouse"
    LIST_WAREHOUSES = "list_warehouses"


class WarehouseAction(Enum):
    GET_METADATA = "get_metadata"
    GET_CONFIG = "get_config"
    USE = "use"
    CREATE_NAMESPACE = "create_namespace"
    LIST_NAMESPACES = "list_namespaces"
    READ_GRANTS = "read_grants"
    MANAGE_GRANTS = "manage_grants"


class NamespaceAction(Enum):
    GET_METADATA = "get_metadata"
    CREATE_NAMESPACE = "create_namespace"
    CREATE_TABLE = "create_table"
    CREATE_VIEW = "create_view"
    UPDATE_PROPERTIES = "update_properties"
    DELETE = "delete"
    LIST_NAMESPACES = "list_namespaces"
    LIST_TABLES = "list_tables"
    LIST_VIEWS = "list_views"


class TableAction(Enum):
    GET_METADATA = "get_metadata"
    READ_DATA = "read_data"
    WRITE_DATA = "write_data"
    COMMIT = "commit"
    DROP = "drop"
    RENAME = "rename"


class ViewAction(Enum):
    GET_METADATA = "get_metadata"
    COMMIT = "commit"
    DROP = "drop"
    RENAME = "rename"


Action = ServerAction | ProjectAction | WarehouseAction | NamespaceAction | TableAction | ViewAction
