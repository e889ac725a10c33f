"""The reference page of events, made from their table in the code; `write_reference` writes it."""

import json
from collections.abc import Iterator, Mapping

from lakewarden.events.schemas import all_schemas
from lakewarden.events.types import SECTIONS, EventType

HEAD = """# Events

Every change writes an event in its own transaction: either both are stored or neither. The audit entry of the change
has the same type (`action`), object, actor and data. A worker (`lakewarden work`) moves events to the event log,
which has one order, and delivers them to the sinks in the settings; see [Receive change events](../how-to/events.md).

## The envelope

Events are [CloudEvents](https://cloudevents.io) 1.0 in JSON (`application/cloudevents+json`), with all attributes in
the body.

| attribute | meaning |
|---|---|
| `id` | the UUID of the event: the same if it arrives twice |
| `source` | `LAKEWARDEN__EVENTS__SOURCE` |
| `type` | see below |
| `dataschema` | `urn:lakewarden:event:<type>:<version>`, see [Schemas](#schemas) |
| `subject` | `<object type>/<object id>` |
| `time` | the time of the change |
| `sequence` | digits that sort as text; greater in each later event of the same object |
| `partitionkey`, `objectid` | the object that changed; the key of a Kafka record |
| `objecttype` | the kind of object |
| `projectid` | the project; missing in events of the server |
| `actor` | the user who made the change, `<provider>~<subject>`; `system~…` for background work |
| `assumedrole` | the role that the user had assumed; missing without one |
| `requestid` | the `X-Request-Id` of the request that made the change; for background work the id of its task |
| `data` | members as listed below; names and ids, never secrets |
"""
NOTES = """
`purge` says whether the files are removed, too. A permanent drop of one table or view has `force`; every other drop has
`deletion-id` and `expires-at`, and `soft` says whether it can be undone until then. `before` is the earlier name, path
or location, or the earlier value of a tag; `replaced-by` is the id of the table that replaced it (a registration with
`overwrite`). A recursive drop writes an event for each object; the event of the dropped namespace also has the number
of objects in it. Tags that an object had end with its permanent drop, without events of their own.

## Schemas

[event-schemas.json](event-schemas.json) has a JSON Schema (2020-12) of `data` for each type. Within a version, members
and types of events are only added: a member of the list above that is always present stays, and keeps its type. So
accept members that you do not know. A change that breaks this gets the next version in `dataschema`.
"""


def schemas() -> str:
    """All JSON Schemas, by type."""
    return json.dumps(all_schemas(), indent=2) + "\n"


def page() -> str:
    """The whole page."""
    return HEAD + "".join(_section(title, events) for title, events in SECTIONS.items()) + NOTES


def _section(title: str, events: Mapping[str, EventType]) -> str:
    return f"\n## {title}\n\n| type | objects | meaning | members of `data` |\n|---|---|---|---|\n" + "".join(
        _rows(events)
    )


def _rows(events: Mapping[str, EventType]) -> Iterator[str]:
    for name, event in events.items():
        members = [f"`{member}`" for member in event.data] + [f"`{member}` (not always)" for member in event.sometimes]
        yield f"| `{name}` | {', '.join(event.objects)} | {event.meaning} | {', '.join(members) or 'none'} |\n"
