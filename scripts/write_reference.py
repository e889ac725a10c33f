"""Writes the reference pages that are generated from the code; `check_project` checks that they are current."""

import os
from pathlib import Path
from typing import get_args, get_origin

import django
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from lakewarden.config import PREFIX, Config
from lakewarden.http.openapi import as_yaml
from scripts import permissions

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
PAGE = REFERENCE / "configuration.md"
MANAGEMENT_API = REFERENCE / "management-api.yaml"
CATALOG_API = REFERENCE / "catalog-api.yaml"
PERMISSIONS = REFERENCE / "permissions.md"
HEAD = """# Configuration

Everything is set by environment variables. Names are matched without case; unknown names and wrong values refuse to
start. Lists are separated by commas. `<ID>` is the id of an OIDC provider (`oidc` for the first): users of it are
`<id>~<subject>`.

| variable | meaning | default |
|---|---|---|
"""


def configuration() -> str:
    """The page of all settings."""
    return HEAD + "\n".join(_rows(Config, PREFIX)) + "\n"


def management_api() -> str:
    """The OpenAPI document of the management API. Raises IncompleteDocument that lists what the code does not say."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakewarden.settings")
    django.setup()
    from management import openapi_document  # noqa: PLC0415 it needs Django's settings

    return as_yaml(openapi_document.document())


def catalog_api() -> str:
    """The OpenAPI document of the catalog API. Raises IncompleteDocument that lists what the code does not say."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakewarden.settings")
    django.setup()
    from catalog.api.openapi import document  # noqa: PLC0415 it needs Django's settings

    return as_yaml(document.document())


def _rows(model: type[BaseModel], prefix: str) -> list[str]:
    rows: list[str] = []
    # as a class writes them down: pydantic lists inherited ones first
    for name in dict.fromkeys([*model.__annotations__, *model.model_fields]):
        field = model.model_fields[name]
        section, path = _section(field), prefix + name.upper()
        if section is None:
            rows.append(f"| `{path}` | {field.description} | {_default(field)} |")
        elif section[1]:
            rows.extend(_rows(section[0], f"{path}__<ID>__"))
        else:
            rows.extend(_rows(section[0], f"{path}__"))
    return rows


def _section(field: FieldInfo) -> tuple[type[BaseModel], bool] | None:
    """The model below a field, and whether it is one of several by id."""
    kind = field.annotation
    if get_origin(kind) is dict:
        return get_args(kind)[1], True
    return (kind, False) if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "required"
    if field.default in (None, ()):
        return "none"
    value = field.default
    return f"`{','.join(value) if isinstance(value, tuple) else value}`"


if __name__ == "__main__":
    PAGE.write_text(configuration(), encoding="utf-8")
    MANAGEMENT_API.write_text(management_api(), encoding="utf-8")
    CATALOG_API.write_text(catalog_api(), encoding="utf-8")
    PERMISSIONS.write_text(permissions.page(), encoding="utf-8")
