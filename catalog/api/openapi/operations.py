"""Descriptions of the catalog API's operations, for API users."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from lakewarden.storage.s3.signer_settings import TABLE_SIGNER

_FORM = "application/x-www-form-urlencoded"

CONFIG: Final = "GET /v1/config"
TOKENS: Final = "POST /v1/oauth/tokens"
ADMISSION: Final = (CONFIG, TOKENS)
"""Operations that do not belong to a warehouse, so `endpoints` in its config does not list them."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response to a request that was not refused; `body` names a component."""

    status: int
    description: str
    body: str | None = None


@dataclass(frozen=True, kw_only=True)
class Operation:
    """`body` names a component; `refusals` describe statuses that have a specific reason."""

    id: str
    tag: str
    summary: str
    description: str
    answers: tuple[Answer, ...]
    parameters: tuple[str, ...] = ()
    body: str | None = None
    body_type: str = "application/json"
    refusals: Mapping[int, str] = field(default_factory=dict)
    is_open: bool = False


def _ok(description: str, body: str) -> tuple[Answer, ...]:
    return (Answer(status=200, description=description, body=body),)


_DONE = (Answer(status=204, description="The request was carried out."),)
_EXISTS = (Answer(status=204, description="It exists."),)
_UNCHANGED = Answer(status=304, description="The client's copy, which `If-None-Match` names, is current.")
_PAGES = ("pageToken", "pageSize")
_DETAILS = ("returnUuids", "returnProtectionStatus")
_NO_WAREHOUSE = {404: "The warehouse does not exist, or is hidden from the caller."}
_NO_NAMESPACE = {404: "The namespace does not exist, or is hidden from the caller."}
_NO_TABLE = {404: "The table does not exist, or is hidden from the caller."}
_NO_VIEW = {404: "The view does not exist, or is hidden from the caller."}
_NO_GENERIC_TABLE = {404: "The generic table does not exist, or is hidden from the caller."}
_NAME_TAKEN = {409: "A table, view or generic table with this name already exists in the namespace."}
_CONFLICT = {409: "A requirement is not met, or another commit was made first: load the current state and try again."}
_PROTECTED = {409: "It is protected: `force=true` drops it anyway, if the caller has the right to."}
_LOADED_TABLE = _ok("The table and its current metadata.", "LoadedTable")
_LOADED_VIEW = _ok("The view and its current metadata.", "LoadedView")

_SIGNED = _ok("The headers that make the request valid for some minutes.", "RemoteSignResult")
_NOT_SIGNED = {
    400: "Such a request is signed for nobody, or not for this warehouse: the message says why.",
    403: "The caller may not do that, or the request reaches beyond the table.",
}
_NOT_SIGNED_ANYWHERE = {404: "No table that the caller can see contains the file.", **_NOT_SIGNED}

_SIGNER = "/" + TABLE_SIGNER
_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = _NAMESPACE + "/tables/{table}"
_VIEW = _NAMESPACE + "/views/{view}"
_GENERIC_TABLE_LIST = _NAMESPACE + "/generic-tables"
_GENERIC_TABLE = _GENERIC_TABLE_LIST + "/{table}"

_NAMESPACES: dict[str, Operation] = {
    "GET /v1/{prefix}/namespaces": Operation(
        id="listNamespaces",
        tag="namespaces",
        summary="List namespaces",
        description="Lists the namespaces of one level that the caller may see.",
        parameters=(*_PAGES, "parent", *_DETAILS),
        answers=_ok("The namespaces.", "NamespaceList"),
        refusals={404: "The warehouse or the parent does not exist, or is hidden from the caller."},
    ),
    "POST /v1/{prefix}/namespaces": Operation(
        id="createNamespace",
        tag="namespaces",
        summary="Create a namespace",
        description="Creates a namespace. The property `location`, a path inside the warehouse, says "
        "where its tables are stored. Without it, the server chooses a location.",
        body="CreateNamespace",
        answers=_ok("The namespace as it was created.", "NamespaceDetails"),
        refusals={
            404: "The warehouse or the parent does not exist, or is hidden from the caller.",
            409: "A namespace with this name already exists, or its location is in use.",
        },
    ),
    f"GET {_NAMESPACE}": Operation(
        id="loadNamespace",
        tag="namespaces",
        summary="Load a namespace",
        description="Returns the properties of a namespace.",
        parameters=("returnUuid",),
        answers=_ok("The namespace.", "NamespaceDetails"),
        refusals=_NO_NAMESPACE,
    ),
    f"HEAD {_NAMESPACE}": Operation(
        id="namespaceExists",
        tag="namespaces",
        summary="Test whether a namespace exists",
        description="The response has no body.",
        answers=_EXISTS,
        refusals=_NO_NAMESPACE,
    ),
    f"DELETE {_NAMESPACE}": Operation(
        id="dropNamespace",
        tag="namespaces",
        summary="Drop a namespace",
        description="Drops an empty namespace or, with `recursive=true`, a namespace and everything "
        "in it. In a warehouse with soft deletion, everything can be restored until the time set in "
        "its delete profile has passed.",
        parameters=("recursive", "force", "purgeRequested", "purge"),
        answers=_DONE,
        refusals={**_NO_NAMESPACE, 409: "The namespace is not empty, or something in it is protected."},
    ),
    f"POST {_NAMESPACE}/properties": Operation(
        id="updateNamespaceProperties",
        tag="namespaces",
        summary="Change the properties of a namespace",
        description="Removes and sets properties in one transaction.",
        body="UpdateProperties",
        answers=_ok("Which properties were changed.", "ChangedProperties"),
        refusals={**_NO_NAMESPACE, 422: "A property is in both `removals` and `updates`."},
    ),
}

_TABLES: dict[str, Operation] = {
    f"GET {_NAMESPACE}/tables": Operation(
        id="listTables",
        tag="tables",
        summary="List tables",
        description="Lists the tables of a namespace that the caller may see.",
        parameters=(*_PAGES, *_DETAILS),
        answers=_ok("The tables.", "IdentifierList"),
        refusals=_NO_NAMESPACE,
    ),
    f"POST {_NAMESPACE}/tables": Operation(
        id="createTable",
        tag="tables",
        summary="Create a table",
        description="Creates a table or, with `stage-create`, only prepares it: a staged table exists "
        "after a commit with the requirement `assert-create`. The server assigns new field ids.",
        parameters=("X-Iceberg-Access-Delegation",),
        body="CreateTable",
        answers=_LOADED_TABLE,
        refusals={**_NO_NAMESPACE, **_NAME_TAKEN},
    ),
    f"GET {_TABLE}": Operation(
        id="loadTable",
        tag="tables",
        summary="Load a table",
        description="Returns the table's current metadata. The response has an `ETag`.",
        parameters=("X-Iceberg-Access-Delegation", "If-None-Match", "snapshots", "referenced-by"),
        answers=(*_LOADED_TABLE, _UNCHANGED),
        refusals=_NO_TABLE,
    ),
    f"HEAD {_TABLE}": Operation(
        id="tableExists",
        tag="tables",
        summary="Test whether a table exists",
        description="The response has no body.",
        answers=_EXISTS,
        refusals=_NO_TABLE,
    ),
    f"POST {_TABLE}": Operation(
        id="commitTable",
        tag="tables",
        summary="Commit changes to a table",
        description="Checks all requirements and applies all updates in their order, or nothing. With the requirement "
        "`assert-create` it creates the table from the updates. After a response of 500, 502 or 504, "
        "or no response, it is unknown whether the commit was made: load the table before trying again.",
        body="CommitTable",
        answers=_ok("The table's new metadata.", "CommittedTable"),
        refusals={**_NO_TABLE, **_CONFLICT},
    ),
    f"DELETE {_TABLE}": Operation(
        id="dropTable",
        tag="tables",
        summary="Drop a table",
        description="Drops a table. In a warehouse with soft deletion, it can be restored until the "
        "time set in the delete profile has passed.",
        parameters=("purgeRequested", "force"),
        answers=_DONE,
        refusals={**_NO_TABLE, **_PROTECTED},
    ),
    f"POST {_TABLE}/unregister": Operation(
        id="unregisterTable",
        tag="tables",
        summary="Remove a table from the catalog",
        description="Removes the table from the catalog immediately and permanently; its files stay.",
        answers=_ok("The table's last metadata.", "CommittedTable"),
        refusals={**_NO_TABLE, **_PROTECTED},
    ),
    f"GET {_TABLE}/credentials": Operation(
        id="loadCredentials",
        tag="tables",
        summary="Load storage credentials for a table",
        description="Returns credentials for the table's files. Warehouses of type `local` have none.",
        parameters=("planId", "referenced-by"),
        answers=_ok("The credentials.", "Credentials"),
        refusals=_NO_TABLE,
    ),
    f"POST {_TABLE}/sign": Operation(
        id="signRequest",
        tag="tables",
        summary="Sign a request to S3",
        description="Signs an engine's request to S3 for a file of the table, or for several. Only warehouses on S3 "
        "with remote signing do so: `endpoints` of the config lists the operation for them alone.",
        body="RemoteSignRequest",
        answers=_SIGNED,
        refusals={**_NO_TABLE, **_NOT_SIGNED},
    ),
    f"POST {_SIGNER}": Operation(
        id="signRequestOfTableId",
        tag="tables",
        summary="Sign a request to S3 for a table given by its id",
        description="As `signRequest`. The configs of tables name this address (`signer.endpoint`), because it stays "
        "the same when a table is renamed or moved, and exists for a staged creation.",
        body="RemoteSignRequest",
        answers=_SIGNED,
        refusals=_NOT_SIGNED_ANYWHERE,
    ),
    "POST /v1/{prefix}/v1/aws/s3/sign": Operation(
        id="signRequestOfWarehouse",
        tag="tables",
        summary="Sign a request to S3 for the table that contains the file",
        description="As `signRequest`, for clients that only know the warehouse.",
        body="RemoteSignRequest",
        answers=_SIGNED,
        refusals=_NOT_SIGNED_ANYWHERE,
    ),
    "POST /{prefix}/v1/aws/s3/sign": Operation(
        id="signRequestBelowWarehouse",
        tag="tables",
        summary="Sign a request to S3 for the table that contains the file, at another address",
        description="The same as `POST /v1/{prefix}/v1/aws/s3/sign`.",
        body="RemoteSignRequest",
        answers=_SIGNED,
        refusals=_NOT_SIGNED_ANYWHERE,
    ),
    f"POST {_TABLE}/metrics": Operation(
        id="reportMetrics",
        tag="tables",
        summary="Send a metrics report",
        description="Stores an engine's report about a scan of the table or a commit to it.",
        body="MetricsReport",
        answers=_DONE,
        refusals=_NO_TABLE,
    ),
    f"POST {_NAMESPACE}/register": Operation(
        id="registerTable",
        tag="tables",
        summary="Register a table by its metadata file",
        description="Creates a table from a metadata file inside the warehouse.",
        parameters=("X-Iceberg-Access-Delegation",),
        body="RegisterTable",
        answers=_LOADED_TABLE,
        refusals={**_NO_NAMESPACE, **_NAME_TAKEN},
    ),
    "POST /v1/{prefix}/tables/rename": Operation(
        id="renameTable",
        tag="tables",
        summary="Rename a table",
        description="Renames a table, within its namespace or into another namespace of the same warehouse.",
        body="Rename",
        answers=_DONE,
        refusals={404: "The table or the namespace of its new name does not exist, or is hidden.", **_NAME_TAKEN},
    ),
    "POST /v1/{prefix}/transactions/commit": Operation(
        id="commitTransaction",
        tag="tables",
        summary="Commit changes to several tables",
        description="Either all of the commits are made or none. After a response of 500, 502 or 504, "
        "or no response, it is unknown whether they were made.",
        body="CommitTransaction",
        answers=_DONE,
        refusals={404: "One of the tables does not exist, or is hidden from the caller.", **_CONFLICT},
    ),
}

_GENERIC_TABLES: dict[str, Operation] = {
    f"GET {_GENERIC_TABLE_LIST}": Operation(
        id="listGenericTables",
        tag="generic tables",
        summary="List generic tables",
        description="Lists the generic tables of a namespace that the caller may see.",
        parameters=_PAGES,
        answers=_ok("The generic tables.", "GenericTableList"),
        refusals=_NO_NAMESPACE,
    ),
    f"POST {_GENERIC_TABLE_LIST}": Operation(
        id="createGenericTable",
        tag="generic tables",
        summary="Create a generic table",
        description="Names a location for files of any format. No file may be there yet: the caller writes them "
        "afterwards. The catalog reads neither the files nor `schema` and `statistics`.",
        body="CreateGenericTable",
        answers=_ok("The generic table, and how its files are reached.", "LoadedGenericTable"),
        refusals={**_NO_NAMESPACE, **_NAME_TAKEN},
    ),
    f"GET {_GENERIC_TABLE}": Operation(
        id="loadGenericTable",
        tag="generic tables",
        summary="Load a generic table",
        description="Returns what the catalog knows of a generic table, with credentials for its files if the storage "
        "has any and the caller may read or write them.",
        answers=_ok("The generic table, and how its files are reached.", "LoadedGenericTable"),
        refusals=_NO_GENERIC_TABLE,
    ),
    f"DELETE {_GENERIC_TABLE}": Operation(
        id="dropGenericTable",
        tag="generic tables",
        summary="Drop a generic table",
        description="Drops a generic table. In a warehouse with soft deletion, it can be restored until the time set "
        "in its delete profile has passed.",
        parameters=("purgeRequested", "force"),
        answers=_DONE,
        refusals={**_NO_GENERIC_TABLE, **_PROTECTED},
    ),
    f"GET {_GENERIC_TABLE}/credentials": Operation(
        id="loadGenericTableCredentials",
        tag="generic tables",
        summary="Load storage credentials for a generic table",
        description="Returns credentials for the files of a generic table. The list is empty for storage that is "
        "reached without them, such as a local directory.",
        parameters=("referenced-by",),
        answers=_ok("The credentials.", "Credentials"),
        refusals=_NO_GENERIC_TABLE,
    ),
    "POST /v1/{prefix}/generic-tables/rename": Operation(
        id="renameGenericTable",
        tag="generic tables",
        summary="Rename a generic table",
        description="Renames a generic table, within its namespace or into another namespace of the same warehouse. "
        "Its files stay where they are.",
        body="Rename",
        answers=_DONE,
        refusals={
            404: "The generic table or the namespace of its new name does not exist, or is hidden.",
            **_NAME_TAKEN,
        },
    ),
}

_VIEWS: dict[str, Operation] = {
    f"GET {_NAMESPACE}/views": Operation(
        id="listViews",
        tag="views",
        summary="List views",
        description="Lists the views of a namespace that the caller may see.",
        parameters=(*_PAGES, *_DETAILS),
        answers=_ok("The views.", "IdentifierList"),
        refusals=_NO_NAMESPACE,
    ),
    f"POST {_NAMESPACE}/views": Operation(
        id="createView",
        tag="views",
        summary="Create a view",
        description="Creates a view with its first version.",
        body="CreateView",
        answers=_LOADED_VIEW,
        refusals={**_NO_NAMESPACE, **_NAME_TAKEN},
    ),
    f"GET {_VIEW}": Operation(
        id="loadView",
        tag="views",
        summary="Load a view",
        description="Returns the view's current metadata. The response has an `ETag`.",
        parameters=("If-None-Match", "referenced-by"),
        answers=(*_LOADED_VIEW, _UNCHANGED),
        refusals=_NO_VIEW,
    ),
    f"HEAD {_VIEW}": Operation(
        id="viewExists",
        tag="views",
        summary="Test whether a view exists",
        description="The response has no body.",
        answers=_EXISTS,
        refusals=_NO_VIEW,
    ),
    f"POST {_VIEW}": Operation(
        id="commitView",
        tag="views",
        summary="Commit changes to a view",
        description="Checks all requirements and applies all updates in their order, or nothing.",
        body="CommitView",
        answers=_LOADED_VIEW,
        refusals={**_NO_VIEW, **_CONFLICT},
    ),
    f"DELETE {_VIEW}": Operation(
        id="dropView",
        tag="views",
        summary="Drop a view",
        description="Drops a view. In a warehouse with soft deletion, it can be restored until the "
        "time set in the delete profile has passed.",
        parameters=("purgeRequested", "force"),
        answers=_DONE,
        refusals={**_NO_VIEW, **_PROTECTED},
    ),
    f"POST {_NAMESPACE}/register-view": Operation(
        id="registerView",
        tag="views",
        summary="Register a view by its metadata file",
        description="Creates a view from a metadata file inside the warehouse.",
        body="RegisterView",
        answers=_LOADED_VIEW,
        refusals={**_NO_NAMESPACE, **_NAME_TAKEN},
    ),
    "POST /v1/{prefix}/views/rename": Operation(
        id="renameView",
        tag="views",
        summary="Rename a view",
        description="Renames a view, within its namespace or into another namespace of the same warehouse.",
        body="Rename",
        answers=_DONE,
        refusals={404: "The view or the namespace of its new name does not exist, or is hidden.", **_NAME_TAKEN},
    ),
}

OPERATIONS: Final[dict[str, Operation]] = {
    CONFIG: Operation(
        id="loadConfig",
        tag="configuration",
        summary="Load the configuration of a warehouse",
        description="Returns where the warehouse is served (`overrides`: `uri` and `prefix`) and "
        "which operations the server supports (`endpoints`). Every client starts here.",
        parameters=("warehouse", "X-Project-Id"),
        answers=_ok("The client's configuration.", "CatalogConfig"),
        refusals=_NO_WAREHOUSE,
    ),
    TOKENS: Operation(
        id="requestToken",
        tag="configuration",
        summary="Find out where tokens are issued",
        description="This server issues no tokens. The response is always an error that names the identity providers: "
        "set the client's `oauth2-server-uri` to the token endpoint of one of them.",
        answers=(Answer(status=400, description="Which identity providers issue tokens.", body="TokenError"),),
        body="TokenRequest",
        body_type=_FORM,
        is_open=True,
    ),
    **_NAMESPACES,
    **_TABLES,
    **_VIEWS,
    **_GENERIC_TABLES,
}
"""Operations by capability: method and path template, as in `endpoints` of the config."""
