"""`GET /v1/config` for callers who have called before."""

from functools import lru_cache, partial
from typing import Final
from urllib.parse import parse_qs
from uuid import UUID

from catalog.api.config import config_body
from catalog.api.hot.answers import JSON, Header, accepted, packed, request_id
from catalog.api.hot.call import Found, HotCall, HotRead, Seen, answered, looked_up, may
from catalog.services import hot_queries
from lakewarden import config
from lakewarden.authz.actions import ObjectType, WarehouseAction
from lakewarden.authz.decision_cache import Epoch
from lakewarden.errors import LakewardenError
from lakewarden.hot.coalescer import Key
from lakewarden.hot.routes import Answer
from lakewarden.http import codings
from lakewarden.http.request import base_uri_of
from lakewarden.names import match_key
from lakewarden.remembered import remembered
from tenants.models.project import DEFAULT_PROJECT_ID
from tenants.services import users

_PROJECT_HEADERS: Final = {b"x-project-id", b"x-project-ident"}
_KEPT: Final = 1000  # answers; they depend on nothing but the warehouse and the address that it was asked at
_LONGEST_KEPT: Final = 300  # characters of an address


def reads_config(capabilities: list[str], signing: list[str]) -> HotRead:
    def rendered(warehouse: UUID, base_uri: str, signs: bool, coding: str | None) -> tuple[bytes, list[Header]]:  # noqa: FBT001 a key of what is kept
        offered = [*capabilities, *signing] if signs else capabilities
        return packed(config_body(warehouse, base_uri=base_uri, capabilities=offered), coding)

    kept = lru_cache(_KEPT)(rendered)

    async def answer(call: HotCall) -> Answer | None:
        request = call.request
        key = None if _PROJECT_HEADERS & request.headers.keys() else _warehouse(request.query)
        if key is None or not users.is_known(call.caller[0]):
            return None
        row = await looked_up(call, key)
        if row is None:
            return None
        identifier, project, number, signs = row
        found = Found(str(identifier), Epoch(project, number))
        if not may(call, found):
            return None
        try:
            base_uri = base_uri_of(request.scheme, request.header)
        except LakewardenError:
            return None
        coding = codings.preferred(accepted(request))
        body, headers = (kept if len(base_uri) <= _LONGEST_KEPT else rendered)(identifier, base_uri, signs, coding)
        seen = Seen(key, row, found, identifier, partial(users.is_known, call.caller[0]))
        return answered(call, seen, (200, [JSON, request_id(request), *headers], body))

    return HotRead(
        answer,
        WarehouseAction.GET_CONFIG,
        ObjectType.WAREHOUSE,
        methods=frozenset({"GET"}),
        look_up=hot_queries.WAREHOUSES,
    )


def _warehouse_key(query: bytes) -> Key | None:
    """(project id, name key) of a query that holds nothing but `warehouse`."""
    asked = parse_qs(query.decode("latin-1"))
    if list(asked) != ["warehouse"] or len(asked["warehouse"]) != 1:
        return None
    project_id, separator, name = asked["warehouse"][0].rpartition("/")
    if not name or "\x00" in project_id or "\x00" in name:
        return None
    if separator:
        return project_id, match_key(name)
    return (DEFAULT_PROJECT_ID, match_key(name)) if config.current().server.enable_default_project else None


_warehouse: Final = remembered(_warehouse_key, entries=10_000, longest=200)
