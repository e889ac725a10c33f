"""`POST` of a new table, and of a new namespace."""

from functools import partial
from typing import Final

from catalog import hot_access
from catalog.api import delegation
from catalog.api.hot.answers import compressed
from catalog.api.hot.call import asked
from catalog.api.hot.write import HotWrite, WriteCall, answered, decoded
from catalog.api.wire_types import CreateNamespace, namespace_body
from catalog.models import Namespace, Tabular
from catalog.models.namespace import path_key
from catalog.services import namespaces
from catalog.services.client_access import Addition, Asked, addition_to_new
from catalog.services.creation_writer.new_namespaces import create_namespace
from catalog.services.creation_writer.new_tables import create_table
from catalog.services.tables import CreateTable
from lakewarden.authz.actions import NamespaceAction, WarehouseAction
from lakewarden.authz.interface import Granted
from lakewarden.errors import LakewardenError
from lakewarden.hot.routes import Answer
from lakewarden.http.request import base_uri_of
from lakewarden.http.request_threads import ask
from lakewarden.names import match_key
from tenants.models import Warehouse


async def _create_table(call: WriteCall) -> Answer | None:
    body = decoded(call, CreateTable, may_be_large=True)
    if body is None or body.stage_create:
        return None
    found = await asked(
        hot_access.namespace_for(
            call.context, *call.key, name=match_key(body.name), action=NamespaceAction.CREATE_TABLE
        )
    )
    if found is None:
        return None
    granted, is_taken = found
    base_uri = base_uri_of(call.request.scheme, call.request.header)
    access = partial(_addition, call, base_uri)
    done = await create_table(granted, body, call.request.body, is_taken=is_taken, access=access)
    if done is None:
        return None
    stored, added = done
    return await answered(call, stored, suffix=added.suffix, mark=added.mark)


async def _addition(call: WriteCall, base_uri: str, tabular: Tabular) -> Addition:
    """What the creator, who will own the table, receives to reach its files. Raises Unavailable."""
    namespace = tabular.namespace
    routes = delegation.routes(base_uri, namespace, tabular.name, tabular.uuid)
    wanted = Asked(delegation.wanted_in(call.request.header(delegation.HEADER) or ""), routes)
    # the storage may have to be asked for credentials
    return await ask(call.context.caller.id, partial(addition_to_new, namespace.warehouse, tabular.location, wanted))


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
