"""The catalog's own OpenAPI document, against which tests check answers."""

from functools import cache

from catalog.api.openapi import document
from tests.openapi.document import Described


@cache
def ours() -> Described:
    errors = {"": "#/components/schemas/Error", "/v1/oauth/tokens": "#/components/schemas/TokenError"}
    return Described("the catalog's document", document.document(), errors=errors)
