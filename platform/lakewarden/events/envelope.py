"""Events as sinks and readers receive them: CloudEvents 1.0, JSON, all of it in the body."""

from typing import Any, Final

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from lakewarden.events import schemas
from lakewarden.events.log import Event

CONTENT_TYPE: Final = JSONFormat.CONTENT_TYPE
_FORMAT: Final = JSONFormat()


def attributes_of(event: Event, *, source: str) -> dict[str, Any]:
    """Attributes of the specification, then extensions.

    `sequence` sorts as text and increases with each event of an object; an event that arrives twice has the same `id`.
    """
    attributes: dict[str, Any] = {
        "specversion": "1.0",
        "id": str(event.id),
        "source": source,
        "type": event.type,
        "subject": f"{event.object_type}/{event.object_id}",
        "time": event.time,
        "datacontenttype": "application/json",
        "dataschema": schemas.uri(event.type),
        "sequence": f"{event.position:019d}",
        "partitionkey": event.object_id,
        "objecttype": event.object_type,
        "objectid": event.object_id,
        "actor": event.actor,
        "requestid": event.request_id,
    }
    optional = {"projectid": event.project_id, "assumedrole": event.assumed_role}
    return attributes | {name: value for name, value in optional.items() if value}


def encoded(event: Event, *, source: str) -> bytes:
    """In the structured content mode."""
    return _FORMAT.write(CloudEvent(attributes_of(event, source=source), event.data))
