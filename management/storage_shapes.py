"""Storage profiles and credentials in the OpenAPI document, from the models that parse them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.profiles import PROFILES

_REF: Final = "#/components/schemas/{model}"
PROFILE: Final = {"$ref": _REF.format(model="StorageProfile")}
CREDENTIAL: Final = {"$ref": _REF.format(model="StorageCredential")}

Schema = dict[str, Any]


def components() -> dict[str, Schema]:
    """The union of the profiles that this server knows, that of their credentials, and what is in them."""
    found: dict[str, Schema] = {}
    profiles = {name: _named("StorageProfile", name) for name in sorted(PROFILES)}
    for name, component in profiles.items():
        found |= _schemas(component, PROFILES[name], {"type": name})
    credentials = {
        _named(f"StorageCredential{kind.FAMILY.capitalize()}", kind.KIND): kind for kind in _credential_kinds()
    }
    for component, kind in credentials.items():
        found |= _schemas(component, kind, {"type": kind.FAMILY, "credential-type": kind.KIND})
    found["StorageProfile"] = {
        "description": "Where the files of a warehouse are, by `type`.",
        **_union(profiles.values()),
        "discriminator": {
            "propertyName": "type",
            "mapping": {name: _REF.format(model=component) for name, component in profiles.items()},
        },
    }
    if credentials:
        found["StorageCredential"] = {
            "description": "What the server proves with that it may use the storage, by `type` and `credential-type`. "
            "No answer contains it.",
            **_union(credentials),
        }
    else:
        found["StorageCredential"] = {"type": "object", "description": "No type of storage has a credential."}
    return found


def _credential_kinds() -> Iterator[type[StorageCredential]]:
    seen: dict[type[StorageCredential], None] = {}
    for profile in PROFILES.values():
        seen |= dict.fromkeys(profile.CREDENTIALS)
    return iter(seen)


def _schemas(component: str, model: type[BaseModel], tags: Mapping[str, str]) -> dict[str, Schema]:
    """The model's schema, and those that it refers to. `tags` tell it from the others of its union."""
    made = model.model_json_schema(ref_template=_REF, mode="validation")
    inner = made.pop("$defs", {})
    schema = _plain(made)
    schema["properties"] = {
        **{name: {"type": "string", "enum": [value]} for name, value in tags.items()},
        **{name: member for name, member in schema["properties"].items() if name not in tags},
    }
    schema["required"] = [*tags, *(name for name in schema.get("required", ()) if name not in tags)]
    return {component: schema, **{name: _plain(each) for name, each in inner.items()}}


def _plain(schema: Any) -> Any:  # noqa: ANN401 any part of a schema
    """As the rest of the document is written: without titles, and without null, which means "not given" everywhere."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        schema = {**{name: value for name, value in schema.items() if name != "anyOf"}, **choices[0]}
    plain = {name: _plain(value) for name, value in schema.items() if name != "title" or not isinstance(value, str)}
    if plain.get("default", "") is None:
        del plain["default"]
    if "const" in plain:
        plain = {"type": "string", "enum": [plain.pop("const")]} | {
            name: value for name, value in plain.items() if name not in {"type", "default"}
        }
    return plain


def _union(names: Any) -> Schema:  # noqa: ANN401 an iterable of names
    return {"oneOf": [{"$ref": _REF.format(model=name)} for name in names]}


def _named(kind: str, name: str) -> str:
    return kind + "".join(word.capitalize() for word in name.split("-"))
