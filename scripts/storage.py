"""The reference page of storage profiles and credentials, from the schemas in the management API's document."""

from collections.abc import Iterator, Mapping
from typing import Any

_HEAD = """# Storage profiles and credentials

What the members `storage-profile` and `storage-credential` of the management API can be. A warehouse is created with
both (`POST /management/v1/warehouse`), `…/storage` and `…/storage-credential` change them later. How to do it:
[Put a bucket under management](../how-to/storage.md).

No answer, event, audit entry or log contains a credential. Answers tell its type as `storage-credential-type`, and hold
the profile as it can be sent again.

Warehouses do not overlap on the whole server: a bucket is one place, by whichever endpoint and in whichever spelling it
is reached. Members marked with *fixed* say where the files are, and cannot be changed once the warehouse has
namespaces.

"""
_LAYOUTS = """## Layouts

`storage-layout` decides which folders are chosen for new namespaces and tables. A namespace's location is fixed when it
is created (`location` in its properties), so another layout applies to new namespaces, and to the names of new tables
in old ones. Who creates a namespace or a table may also choose its location, inside the warehouse.

| type | location of a namespace | location of a table |
|---|---|---|
| `default` | `<warehouse>/<id>` | `<namespace>/<id>` |
| `full-hierarchy` | `<parent>/<namespace template>` | `<namespace>/<tabular template>` |
| `tabular-only` | `<warehouse>` | `<warehouse>/<tabular template>` |

In templates, `{uuid}` stands for the id and `{name}` for the percent-encoded name of the object. Letters, digits and
`. _ ~ = -` are allowed besides. Prefer templates with `{uuid}`: with `{name}` alone, a table cannot be created where
files of a renamed or dropped table of the same name still are. In `full-hierarchy`, namespaces cannot be moved, because
their folders have their names and files stay where they are.

| layout | member | required | meaning |
|---|---|---|---|
"""


def page(document: Mapping[str, Any]) -> str:
    """Tables of all types, in the order of their names."""
    from lakewarden.storage.profiles import PROFILES  # noqa: PLC0415 it needs Django's settings

    schemas = document["components"]["schemas"]
    parts = [_HEAD]
    for name, reference in schemas["StorageProfile"]["discriminator"]["mapping"].items():
        fixed = PROFILES[name].PLACE_FIELDS
        parts.append(_section(f"Profile `{name}`", _resolved(schemas, reference), fixed))
    for choice in schemas["StorageCredential"].get("oneOf", ()):
        schema = _resolved(schemas, choice["$ref"])
        family, kind = (schema["properties"][each]["enum"][0] for each in ("type", "credential-type"))
        parts.append(_section(f"Credential `{kind}` of `{family}`", schema, ()))
    parts.append(_LAYOUTS)
    for name in ("FullHierarchy", "TabularOnly"):
        kind = schemas[name]["properties"]["type"]["enum"][0]
        parts.extend(f"| `{kind}` {row}\n" for row in _rows(schemas[name], ()) if "`type`" not in row)
    return "".join(parts)


def _section(title: str, schema: Mapping[str, Any], fixed: tuple[str, ...]) -> str:
    rows = "\n".join(_rows(schema, fixed))
    return f"## {title}\n\n{schema['description']}\n\n| member | required | meaning |\n|---|---|---|\n{rows}\n\n"


def _rows(schema: Mapping[str, Any], fixed: tuple[str, ...]) -> Iterator[str]:
    for name, member in schema["properties"].items():
        is_required = "yes" if name in schema.get("required", ()) else ""
        yield f"| `{name}` | {is_required} | {' '.join(_meaning(member, is_fixed=name in fixed))} |"


def _meaning(member: Mapping[str, Any], *, is_fixed: bool) -> Iterator[str]:
    yield member["description"]
    if len(member.get("enum", ())) == 1:
        yield f"`{member['enum'][0]}`."
    elif "enum" in member:
        yield f"One of {', '.join(f'`{each}`' for each in member['enum'])}."
    if "default" in member:
        yield f"Default: `{str(member['default']).lower()}`."
    if "minimum" in member and "maximum" in member:
        yield f"{member['minimum']} to {member['maximum']} are allowed."
    if is_fixed:
        yield "*Fixed.*"


def _resolved(schemas: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = schemas[reference.rpartition("/")[2]]
    return found
