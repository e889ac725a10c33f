"""Every type of event, with its objects and the members of its `data`. Tests compare recorded events with this.

The reference of events is generated from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class EventType:
    """`objects` are the possible object types; `data` are members that are always present, `sometimes` the others."""

    meaning: str
    objects: tuple[str, ...]
    data: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()


_TABULAR: Final = ("name", "namespace", "warehouse-id", "metadata-location", "version")
_NAMESPACE: Final = ("namespace", "warehouse-id")
_NAMED: Final = ("name", *_NAMESPACE)
_DROPPED: Final = ("purge", "force", "soft", "deletion-id", "expires-at")


def _of_tabulars(kind: str, always: tuple[str, ...] = _TABULAR) -> dict[str, EventType]:
    kinds, name = (kind.replace(" ", "-"),), kind.title().replace(" ", "")
    return {
        f"create{name}": EventType(f"A {kind} was created.", kinds, always),
        f"rename{name}": EventType(f"A {kind} was renamed or moved.", kinds, (*always, "before")),
        f"drop{name}": EventType(
            f"A {kind} was dropped: permanently, or so that it can be restored.",
            kinds,
            always,
            (*_DROPPED, "replaced-by"),
        ),
        f"expire{name}": EventType(
            f"The time in which a dropped {kind} could be restored is over.",
            kinds,
            (*_NAMED, "purge", "deletion-id"),
        ),
        f"set{name}Protection": EventType(
            f"A {kind} was protected from deletion, or its protection was removed.",
            kinds,
            (*_NAMED, "protected", "reason", "before"),
        ),
    }


def _of_metadata(kind: str) -> dict[str, EventType]:
    kinds, name = (kind,), kind.title()
    return {
        f"register{name}": EventType(f"A {kind} was registered from a metadata file.", kinds, _TABULAR),
        f"update{name}": EventType(f"A commit changed a {kind}.", kinds, _TABULAR, ("previous-metadata-location",)),
    }


_CATALOG: Final[dict[str, EventType]] = {
    **_of_tabulars("table"),
    **_of_metadata("table"),
    **_of_tabulars("view"),
    **_of_metadata("view"),
    **_of_tabulars("generic table", (*_NAMED, "location")),
    "createGenericTable": EventType(
        "A generic table was created.", ("generic-table",), (*_NAMED, "location", "format")
    ),
    "unregisterTable": EventType("A table left the catalog; its files stay.", ("table",), _TABULAR),
    "undropTabulars": EventType(
        "A dropped object was restored; there is one event for each.",
        ("table", "view", "generic-table", "namespace"),
        (*_NAMESPACE, "deletion-id"),
        ("name",),
    ),
    "createNamespace": EventType("A namespace was created.", ("namespace",), _NAMESPACE),
    "updateNamespaceProperties": EventType(
        "Properties of a namespace were set or removed.", ("namespace",), (*_NAMESPACE, "updated", "removed")
    ),
    "moveNamespace": EventType(
        "A namespace was renamed or moved, with everything in it.", ("namespace",), (*_NAMESPACE, "before", "moved")
    ),
    "dropNamespace": EventType(
        "A namespace was dropped: permanently, or so that it can be restored.",
        ("namespace",),
        _NAMESPACE,
        (*_DROPPED, "recursive", "namespaces-below", "tables-and-views"),
    ),
    "expireNamespace": EventType(
        "The time in which a dropped namespace could be restored is over.",
        ("namespace",),
        (*_NAMESPACE, "purge", "deletion-id"),
    ),
    "setNamespaceProtection": EventType(
        "A namespace was protected from deletion, or its protection was removed.",
        ("namespace",),
        (*_NAMESPACE, "protected", "reason", "before"),
    ),
}
_WAREHOUSES: Final[dict[str, EventType]] = {
    "createWarehouse": EventType("A warehouse was created.", ("warehouse",), ("name", "location")),
    "renameWarehouse": EventType("A warehouse was renamed.", ("warehouse",), ("name", "before")),
    "activateWarehouse": EventType(
        "A warehouse was activated: the catalog serves it again.", ("warehouse",), ("name",)
    ),
    "deactivateWarehouse": EventType(
        "A warehouse was deactivated: the catalog no longer serves it.", ("warehouse",), ("name",)
    ),
    "updateWarehouseStorage": EventType(
        "A warehouse's storage profile was changed; `credential-type` if its credential was changed, too.",
        ("warehouse",),
        ("name", "location", "before"),
        ("credential-type",),
    ),
    "updateWarehouseStorageCredential": EventType(
        "A warehouse received another storage credential.", ("warehouse",), ("name", "credential-type")
    ),
    "updateWarehouseDeleteProfile": EventType(
        "A warehouse's delete profile was changed.", ("warehouse",), ("name", "delete-profile")
    ),
    "updateWarehouseFormatVersionPolicy": EventType(
        "A warehouse's format version policy was changed.",
        ("warehouse",),
        ("name", "allowed-format-versions", "default-format-version"),
    ),
    "updateWarehouseManagedBy": EventType(
        "Who may change a warehouse was changed.", ("warehouse",), ("name", "managed-by")
    ),
    "updateWarehouseProtection": EventType(
        "A warehouse was protected from deletion, or its protection was removed.",
        ("warehouse",),
        ("name", "protected", "before"),
        ("reason",),
    ),
    "deleteWarehouse": EventType("A warehouse was deleted.", ("warehouse",), ("name", "location", "force")),
}
_TENANTS: Final[dict[str, EventType]] = {
    "bootstrapServer": EventType("The server has a first administrator.", ("server",), ("admin", "privilege")),
    "reopenBootstrap": EventType("The next caller of bootstrap becomes an administrator.", ("server",)),
    "createProject": EventType("A project was created.", ("project",), ("name",)),
    "renameProject": EventType("A project was renamed.", ("project",), ("name", "before")),
    "deleteProject": EventType("A project was deleted.", ("project",), ("name",)),
    "createUser": EventType("A user was created.", ("user",), ("type",), ("was-deleted",)),
    "updateUser": EventType("A user was changed.", ("user",), ("fields",)),
    "deleteUser": EventType("A user was deleted, with all rights.", ("user",)),
    "createRole": EventType("A role was created.", ("role",), ("name", "provider-id", "source-id")),
    "updateRole": EventType("A role's name or description was changed.", ("role",), ("name", "fields")),
    "updateRoleSource": EventType(
        "A role was bound to another group of an identity provider.", ("role",), ("provider-id", "source-id")
    ),
    "updateRoleMembers": EventType("Members of a role were added or removed.", ("role",), ("added", "removed")),
    "deleteRole": EventType("A role was deleted.", ("role",), ("name",)),
}
_RIGHTS: Final[dict[str, EventType]] = {
    "updateGrants": EventType(
        "Rights on an object were granted or revoked.",
        ("server", "project", "warehouse", "namespace", "table", "view", "generic-table", "role", "tag-definition"),
        ("writes", "deletes"),
    ),
    "setManagedAccess": EventType("Managed access was set or removed.", ("warehouse", "namespace"), ("managed",)),
}
_DEFINED: Final = ("name", "description", "scope", "allowed-values")
_TAGGED: Final = ("tag", "tag-definition-id", "warehouse-id")
_TAGGABLE: Final = ("warehouse", "namespace", "table", "view", "generic-table")
_TAGS: Final[dict[str, EventType]] = {
    "createTagDefinition": EventType("A tag definition was created.", ("tag-definition",), (*_DEFINED, "value-kind")),
    "updateTagDefinition": EventType("A tag definition was changed.", ("tag-definition",), (*_DEFINED, "fields")),
    "deleteTagDefinition": EventType("A tag definition was deleted.", ("tag-definition",), ("name",)),
    "applyTag": EventType(
        "A tag was set on an object or a column, or got another value.",
        _TAGGABLE,
        (*_TAGGED, "value"),
        ("path", "field-id", "column", "before"),
    ),
    "removeTag": EventType(
        "A tag was removed from an object or a column.",
        _TAGGABLE,
        (*_TAGGED, "before"),
        ("path", "field-id", "column"),
    ),
}
_GOVERNED: Final = ("warehouse", "namespace", "table", "view")
_CONTRACTS: Final[dict[str, EventType]] = {
    "setDataContract": EventType(
        "A data contract was set on an object, or changed.",
        _GOVERNED,
        ("warehouse-id", "contract", "contract-version", "before"),
        ("namespace", "name"),
    ),
    "removeDataContract": EventType(
        "The data contract of an object was removed.",
        _GOVERNED,
        ("warehouse-id", "contract-version", "before"),
        ("namespace", "name"),
    ),
}
_TASKS: Final[dict[str, EventType]] = {
    "controlTask": EventType(
        "A task was stopped, cancelled or rescheduled.",
        ("task",),
        ("queue-name", "action", "was"),
        ("scheduled-for", "warehouse-id"),
    ),
    "endTask": EventType(
        "A task ended: it was done, it was cancelled, or its last attempt failed. The files of a dropped table are "
        "removed by a task of the queue `tabular_purge`.",
        ("task",),
        ("queue-name", "outcome", "attempts", "entity-type", "entity-id"),
        ("warehouse-id",),
    ),
    "setTaskQueueConfig": EventType(
        "The settings of a task queue were changed.",
        ("project", "warehouse"),
        ("queue-name", "queue-config", "max-seconds-since-last-heartbeat"),
    ),
}
_DELIVERY: Final[dict[str, EventType]] = {
    "replayEvents": EventType("Events were delivered to a sink again.", ("event-sink",), ("since", "events")),
    "sendDeadLetters": EventType("Events that a sink had refused were sent once more.", ("event-sink",), ("count",)),
    "dropDeadLetters": EventType("Events that a sink had refused were deleted.", ("event-sink",), ("count",)),
}
SECTIONS: Final[Mapping[str, Mapping[str, EventType]]] = {
    "Tables, views, generic tables and namespaces": _CATALOG,
    "Warehouses": _WAREHOUSES,
    "Server, projects, users and roles": _TENANTS,
    "Rights": _RIGHTS,
    "Tags": _TAGS,
    "Data contracts": _CONTRACTS,
    "Tasks": _TASKS,
    "Delivery of events": _DELIVERY,
}
RIGHTS: Final = frozenset(_RIGHTS)
EVENTS: Final[Mapping[str, EventType]] = {
    name: event for section in SECTIONS.values() for name, event in section.items()
}
