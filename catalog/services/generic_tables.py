"""Generic tables: files of any format that the catalog names, places and guards, and whose content it never reads."""

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from django.db import IntegrityError
from django.db.models.functions import Length

from catalog.access import tabular_chain
from catalog.models import GenericTable, Namespace, Tabular
from catalog.models.tabular import ListedTabular
from catalog.services import limits, location_claims, locations, tabulars
from catalog.services.location_claims import Claim
from catalog.services.namespaces import check_properties, hold_place
from catalog.services.pointer import gone, record_change
from lakewarden import config
from lakewarden.authz.interface import Granted
from lakewarden.authz.ledger import grants as ledger
from lakewarden.db_transaction import changing
from lakewarden.errors import InvalidArgument, NoSuchNamespace
from lakewarden.ids import new_id
from lakewarden.names import match_key
from lakewarden.paging import Page

_KIND: Final = Tabular.Kind.GENERIC_TABLE
FORMAT: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ABSENT: Final = {b"", b"null"}


class CreateGenericTable(msgspec.Struct, rename="kebab"):
    name: str
    format: str
    base_location: str | None = None
    doc: str | None = None
    properties: dict[str, str] | None = None
    schema: msgspec.Raw = msgspec.Raw()
    statistics: msgspec.Raw = msgspec.Raw()


@dataclass(frozen=True, slots=True)
class Loaded:
    tabular: Tabular
    details: GenericTable


@dataclass(frozen=True, slots=True)
class Planned(Loaded):
    """A generic table as it would be; nothing of it is stored yet."""

    namespace: Granted[Namespace]
    claim: Claim


def plan(namespace: Granted[Namespace], request: CreateGenericTable) -> Planned:
    """What `create` will store.

    Raises AlreadyExists for a taken name, InvalidArgument for a location outside the warehouse and for a member that
    breaks a rule or a limit.
    """
    target = namespace.target
    tabulars.check_free(target, request.name, _KIND)
    uuid = new_id()
    details = _details(request)
    location = request.base_location or locations.default_location(target, request.name, uuid)
    claim = location_claims.in_namespace(
        target,
        locations.inside(target.warehouse, location),
        context=namespace.context,
        generated=not request.base_location and target.warehouse.profile.layout.has_own_tabulars,
    )
    tabular = Tabular(
        id=new_id(),
        warehouse=target.warehouse,
        namespace=target,
        kind=_KIND,
        name=request.name,
        name_key=match_key(request.name),
        uuid=uuid,
        location=claim.location,
    )
    return Planned(tabular, details, namespace, claim)


def create(planned: Planned) -> Loaded:
    """Name a place in which no file is yet; whoever may write data fills it.

    Rows, owner, audit and event are added in one transaction. Raises AlreadyExists for a taken name or an overlapping
    location, InvalidArgument for one that is not empty.
    """
    namespace, tabular, details, claim = planned.namespace, planned.tabular, planned.details, planned.claim
    target = namespace.target
    claim.check()
    try:
        with changing():
            hold_place(target)  # what its owner is granted says where it lies
            claim.take(tabular.id)
            tabular.save(force_insert=True)
            details.tabular = tabular
            details.save(force_insert=True)
            ledger.give_creator(tabular_chain(tabular), namespace.context.caller)
            record_change("createGenericTable", tabular, namespace.context, format=details.format)
    except IntegrityError as error:
        if "foreign key" in str(error):
            raise NoSuchNamespace(f"Namespace does not exist: {target}") from error
        raise tabulars.taken(target, tabular.name, _KIND, asked=_KIND) from error
    return planned


def load(granted: Granted[Tabular]) -> Loaded:
    """Raises the kind's own 404 when it is gone meanwhile."""
    tabular = granted.target
    rows = GenericTable.objects.filter(tabular_id=tabular.id, tabular__deleted_at__isnull=True)
    sizes = rows.values_list(Length("schema"), Length("statistics")).first()
    if sizes is not None:
        limits.hold_document(tabular.id, sum(size or 0 for size in sizes))
    details = rows.first()
    if details is None:
        raise gone(tabular)
    return Loaded(tabular, details)


def listed(granted: Granted[Namespace], page: Page) -> tuple[list[tuple[ListedTabular, str | None]], str | None]:
    """Those in a namespace, each with its format, as `tabulars.listed`."""
    found, last = tabulars.listed(granted, _KIND, page)
    formats = GenericTable.objects.formats(granted.target.warehouse_id, [each.id for each in found])
    return [(each, formats.get(each.id)) for each in found], last


def _details(request: CreateGenericTable) -> GenericTable:
    settings = config.current().catalog
    if not FORMAT.fullmatch(request.format):
        raise InvalidArgument(
            f"Invalid format {request.format[:80]!r}: a name such as 'lance' or 'delta' is expected, of at most 64 "
            "lower-case letters, digits, '.', '_' and '-', which starts with a letter or digit"
        )
    doc, properties = request.doc, request.properties or {}
    if doc is not None and (size := len(doc.encode())) > (most := settings.max_generic_doc_bytes):
        raise InvalidArgument(
            f"Invalid doc: it has {size} bytes, and at most {most} are allowed (catalog.max_generic_doc_bytes)"
        )
    if doc is not None and "\x00" in doc:
        raise InvalidArgument("Invalid doc: the character U+0000 cannot be stored")
    check_properties(properties)
    limits.check_properties(properties)
    return GenericTable(
        format=request.format,
        doc=doc,
        properties=properties,
        schema=_json(request.schema, "schema"),
        statistics=_json(request.statistics, "statistics"),
    )


def _json(raw: msgspec.Raw, member: str) -> str | None:
    """The JSON as it was written, proven to be valid; None if there is none."""
    content, name = bytes(raw), f"max_generic_{member}_bytes"
    most = getattr(config.current().catalog, name)
    if content in _ABSENT:
        return None
    if len(content) > most:
        raise InvalidArgument(
            f"Invalid {member}: it has {len(content)} bytes, and at most {most} are allowed (catalog.{name})"
        )
    try:
        msgspec.json.decode(content, type=Any)
        return content.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidArgument(f"Invalid {member}: it is not valid JSON, or nested too deeply: {error}") from None
