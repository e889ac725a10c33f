"""What the fallback file holds of a batch or request: all that the log's statements need, and who sent it."""

from typing import Any, Final
from uuid import UUID

import msgspec

from ingest.services.appender import Item
from ingest.services.log import Batch, Request
from ingest.services.targets import Place, Target
from lakewarden.context import Caller, CallerKey, PrincipalId, RequestContext
from lakewarden.ids import new_id_text


class KeptTarget(msgspec.Struct, array_like=True):
    said: dict[str, Any]
    namespace_id: UUID
    path_key: str
    name_key: str
    table_id: UUID | None
    epoch: int
    project_id: str

    @classmethod
    def of(cls, target: Target) -> "KeptTarget":
        place = target.place
        return cls(
            target.said, place.namespace_id, place.path_key, place.name_key, place.table_id, target.epoch,
            target.project_id,
        )  # fmt: skip

    def target(self) -> Target:
        place = Place(self.namespace_id, self.path_key, self.name_key, self.table_id)
        return Target(self.said, place, self.epoch, self.project_id)


class Kept(msgspec.Struct, array_like=True):
    """`caller` decides on rights; `targets` are the decisions that the sender's last batch in the log was based on."""

    warehouse_id: UUID
    caller: tuple[str, tuple[str, ...], str | None]
    targets: tuple[KeptTarget, ...]
    batch: Batch | None = None
    request: Request | None = None

    @property
    def sent(self) -> Batch | Request:
        found = self.batch or self.request
        if found is None:
            raise ValueError("A record holds a batch or a request")
        return found

    @property
    def chain(self) -> "Chain":
        """What must be replayed in order: the batches of a source, or a request, which stands for itself."""
        return chain_of(self.warehouse_id, self.sent)

    def context(self) -> RequestContext:
        """To decide again in their name: their token may have expired, their rights are looked at now."""
        identifier, roles, assumed = self.caller
        caller = Caller(id=PrincipalId(identifier), token_roles=roles, assumed_role=assumed)
        return RequestContext(caller=caller, request_id=new_id_text())


Chain = tuple[UUID, str, str, str]
"""Warehouse, principal, and a source or the key of a request."""

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Kept)


def chain_of(warehouse_id: UUID, sent: Batch | Request) -> Chain:
    if isinstance(sent, Batch):
        return (warehouse_id, sent.principal, sent.source_id, "")
    return (warehouse_id, sent.principal, "", sent.key)


def encode(warehouse_id: UUID, caller: CallerKey, item: Item[Batch] | Item[Request]) -> bytes:
    sent = item.sent
    batch, request = (sent, None) if isinstance(sent, Batch) else (None, sent)
    targets = tuple(map(KeptTarget.of, item.targets))
    return _ENCODER.encode(Kept(warehouse_id, (str(caller[0]), *caller[1:]), targets, batch, request))


def decode(record: bytes) -> Kept:
    """Raises msgspec.DecodeError for a record of another release."""
    return _DECODER.decode(record)
