"""Writes the references that are generated from the code, and the schema of the chart's values; `check_project` checks
that they are current.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import get_args, get_origin

import django
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from lakewarden.config import PREFIX, Config
from lakewarden.http.openapi import as_yaml
from scripts import chart_schema, cli, events, permissions

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
HEAD = """# Configuration

All settings are environment variables. Upper and lower case are the same in names. The server does not start if a name
is unknown or a value is not valid. Lists are separated by commas. `<ID>` is the id of an OIDC provider, `oidc` for the
first one; the ids of its users are `<id>~<subject>`.

| variable | meaning | default |
|---|---|---|
"""


def configuration() -> str:
    """The page of all settings."""
    return HEAD + "\n".join(_rows(Config, PREFIX)) + "\n"


def management_api() -> str:
    """The OpenAPI document of the management API. Raises IncompleteDocument that lists what the code does not say."""
    from management import openapi_document  # noqa: PLC0415 it needs Django's apps

    return as_yaml(openapi_document.document())


def management_routes() -> str:
    """The page of the management API's routes."""
    from management import openapi_document  # noqa: PLC0415 it needs Django's apps
    from scripts import management_routes as routes  # noqa: PLC0415

    return routes.page(openapi_document.document())


def compatibility() -> str:
    """The page that compares the management API with the one that it is a drop-in for."""
    from management import openapi_document  # noqa: PLC0415 it needs Django's apps
    from scripts import compatibility as clients  # noqa: PLC0415

    return clients.page(openapi_document.document())


def storage() -> str:
    """The page of storage profiles and credentials."""
    from management import openapi_document  # noqa: PLC0415 it needs Django's apps
    from scripts import storage as shapes  # noqa: PLC0415

    return shapes.page(openapi_document.document())


def catalog_api() -> str:
    """The OpenAPI document of the catalog API. Raises IncompleteDocument that lists what the code does not say."""
    from catalog.api.openapi import document  # noqa: PLC0415 it needs Django's apps

    return as_yaml(document.document())


def errors() -> str:
    """The page of errors."""
    from scripts import errors as tree  # noqa: PLC0415 it needs Django's apps

    return tree.page()


PAGES: Mapping[str, Callable[[], str]] = {
    "configuration.md": configuration,
    "cli.md": cli.page,
    "permissions.md": permissions.page,
    "errors.md": errors,
    "events.md": events.page,
    "event-schemas.json": events.schemas,
    "management-api.md": management_routes,
    "management-api.yaml": management_api,
    "catalog-api.yaml": catalog_api,
    "compatibility.md": compatibility,
    "storage.md": storage,
}


def pages() -> Iterator[tuple[Path, str]]:
    """Each page's file and what it should hold."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lakewarden.settings")
    django.setup()
    for name, page in PAGES.items():
        yield REFERENCE / name, page()
    yield chart_schema.CHART / "values.schema.json", chart_schema.values_schema()


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
        section = get_args(kind)[1]
        return (section, True) if isinstance(section, type) and issubclass(section, BaseModel) else None
    if isinstance(kind, UnionType):  # a section that may be left out
        kind = next((each for each in get_args(kind) if isinstance(each, type) and issubclass(each, BaseModel)), kind)
    return (kind, False) if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "none" if field.default_factory is dict else "required"
    if field.default in (None, ()):
        return "none"
    value = field.default
    return f"`{','.join(value) if isinstance(value, tuple) else value}`"


if __name__ == "__main__":
    for path, text in pages():
        path.write_text(text, encoding="utf-8")
