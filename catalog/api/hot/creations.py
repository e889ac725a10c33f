"""`POST` of a new table, and of a new namespace."""

from typing import Final

from catalog import hot_access
from catalog.api.hot.answers import compressed
from catalog.api.hot.call import asked
from catalog.api.hot.write import HotWrite, WriteCall, answered, decoded
from catalog.api.wire_types import CreateNamespace, namespace_body
from catalog.models import Namespace
from catalog.models.namespace import path_key
from catalog.services import namespaces
from catalog.services.client_access import NO_CONFIG
from catalog.services.creation_writer.new_namespaces import create_namespace
from catalog.services.creation_writer.new_tables import create_table
from catalog.services.tables import CreateTable
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import LakewardenError
from lakewarden.hot.routes import Answer
from tenants.models import Warehouse


async def _create_table(call: WriteCall) -> Answer | None:
    body = decoded(call, CreateTable, may_be_large=True)
    if body is None or body.stage_create:
        return None
    granted = await asked(hot_access.namespace(call.context, *call.key, action=NamespaceAction.CREATE_TABLE))
    if granted is None or granted.target.warehouse.profile.CLIENTS_NEED_CONFIG:
        return None  # the response for such clients may need a request to the storage, which would block the event loop
    done = await create_table(granted, body, call.request.body)
    return None if done is None else await answered(call, done, suffix=NO_CONFIG)


async def _create_namespace(call: WriteCall) -> Answer | None:
    body = decoded(call, CreateNamespace)
    if body is None:
        return None
    try:
        namespaces.check_path(body.namespace)
    except LakewardenError:
        return None
    parent = await _parent(call, body.namespace[:-1])
    done = parent and await create_namespace(parent, body.namespace, body.properties or {})
    if not done:
        return None
    return compressed(call.request, namespace_body(done.path, done.properties), identifier=call.identifier)


async def _parent(call: WriteCall, path: list[str]) -> Granted[Warehouse] | Granted[Namespace] | None:
    (warehouse,) = call.key
    if path:
        action = NamespaceAction.CREATE_NAMESPACE
        return await asked(hot_access.namespace(call.context, warehouse, path_key(path), action=action))
    return await asked(hot_access.warehouse(call.context, warehouse, action=WarehouseAction.CREATE_NAMESPACE))


TABLE: Final = HotWrite(_create_table)
NAMESPACE: Final = HotWrite(_create_namespace)
