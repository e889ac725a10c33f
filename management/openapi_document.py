"""Generates the OpenAPI document of the management API from its views and bodies."""

from functools import cache
from typing import Final

from django.urls import URLPattern, include, path
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from lakewarden.http import openapi
from lakewarden.http.openapi import Document, IncompleteDocument


@cache
def document() -> Document:
    """The whole document. Raises IncompleteDocument if descriptions are missing."""
    from management.urls import routes  # noqa: PLC0415 it imports this module for its route

    generator = SchemaGenerator(patterns=[path("management/v1/", include(list(routes)))])  # type: ignore[no-untyped-call]
    with GENERATOR_STATS.silence():
        made: Document = generator.get_schema(public=True)  # type: ignore[no-untyped-call]
    problems = [*GENERATOR_STATS._error_cache, *GENERATOR_STATS._warn_cache]  # noqa: SLF001 the library has no other way to read them
    if problems:
        raise IncompleteDocument("\n".join(problems))
    return made


routes: Final[list[URLPattern]] = openapi.routes(document)
