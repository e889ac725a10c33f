"""What lists have in common: how a page is asked for, and the token of the next one; used by the list endpoints."""

from drf_spectacular.utils import OpenApiParameter

from lakewarden.errors import BadRequest
from lakewarden.http.request import ApiRequest
from lakewarden.paging import next_token

PAGE_PARAMETERS = [
    OpenApiParameter("pageToken", str, description="The `next-page-token` of the previous page."),
    OpenApiParameter("pageSize", int, description="The maximum number of entries; 100 by default, 1000 at most."),
]


def token_of(following: str | None) -> str | None:
    """The token of the page behind the key `following`; None behind the last page."""
    return None if following is None else next_token(following)


def text_filter(call: ApiRequest, name: str) -> str | None:
    """A text of the query, or None when it is absent or empty. Raises BadRequest for one that no name can hold."""
    value = call.query.get(name)
    if value and not value.isprintable():
        raise BadRequest(f"Invalid query parameter {name}={value[:80]!r}: it contains a control character")
    return value or None
