"""The schema of the chart's values: `config`, `secretRefs` and `secretValues` come from the configuration's types."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from lakewarden.config import Config

CHART = Path(__file__).parent.parent / "helm" / "lakewarden"
_OWN = Path(__file__).with_name("chart_schema.yaml")
_REF = "#/$defs/"
_OBJECTS = {"spark", "policy", "warehouse_policies"}
"""Settings that are objects themselves: in the environment they are JSON."""

Schema = dict[str, Any]


def values_schema() -> str:
    """values.schema.json: what scripts/chart_schema.yaml says of the chart's own values, with all settings."""
    own: Schema = yaml.safe_load(_OWN.read_text(encoding="utf-8"))
    whole = Config.model_json_schema()
    settings: dict[str, Schema] = {f"settings.{name}": each for name, each in whole.pop("$defs").items()}
    names = sorted(_secret_names(whole, settings, ()))
    own["$defs"] |= {name: _public(section) for name, section in settings.items()}
    own["$defs"]["secretName"] = {"type": "string", "pattern": f"^({'|'.join(names)})$"}
    own["properties"]["config"] = _public(whole)
    return json.dumps(own, indent=1) + "\n"


def _secret_names(section: Schema, settings: dict[str, Schema], path: tuple[str, ...]) -> Iterator[str]:
    """The dotted names of secret settings, as regular expressions: an id may be anything."""
    for name, setting in section.get("properties", {}).items():
        here = (*path, re.escape(name))
        if _is_secret(setting):
            yield r"\.".join(here)
        for target, is_by_id in _targets(setting):
            yield from _secret_names(settings[target], settings, (*here, "[a-z0-9_-]+") if is_by_id else here)


def _targets(setting: Schema) -> Iterator[tuple[str, bool]]:
    """The sections below a setting, and whether they are several by id."""
    for each in (setting, *setting.get("anyOf", ())):
        if "$ref" in each:
            yield _local(each["$ref"]), False
        further = each.get("additionalProperties")
        if isinstance(further, dict) and "$ref" in further:
            yield _local(further["$ref"]), True


def _local(reference: str) -> str:
    return "settings." + reference.removeprefix(_REF)


def _is_secret(setting: Schema) -> bool:
    return any(each.get("writeOnly") for each in (setting, *setting.get("anyOf", ())))


def _public(section: Schema) -> Schema:
    """A section without its secrets. No setting is required: another source may set it."""
    properties = {
        name: _setting(name, setting) for name, setting in section["properties"].items() if not _is_secret(setting)
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _setting(name: str, setting: Schema) -> Schema:
    kept: Schema = {key: value for key, value in setting.items() if key != "default"}
    kept = dict(_renamed(kept))
    if name in _OBJECTS or kept.get("type") == "array":
        return {"anyOf": [kept, {"type": "string"}]} | ({"description": kept.pop("description")})
    return kept


def _renamed(value: Any) -> Any:  # noqa: ANN401 any JSON
    """The value with references to sections under their names here."""
    if isinstance(value, dict):
        return {
            key: f"{_REF}{_local(each)}" if key == "$ref" else _renamed(each)
            for key, each in value.items()
            if not (key == "title" and isinstance(each, str))
        }
    return [_renamed(each) for each in value] if isinstance(value, list) else value
