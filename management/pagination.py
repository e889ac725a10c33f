"""Parameters and helpers of views that return lists in pages."""

from drf_spectacular.utils import OpenApiParameter

from lakewarden.errors import BadRequest
from lakewarden.http.request import ApiRequest
from lakewarden.paging import next_token

PAGE_PARAMETERS = [
    OpenApiParameter("pageToken", str, description="The `next-page-token` of the previous page."),
    OpenApiParameter("pageSize", int, description="The maximum number of entries; 100 by default, 1000 at most."),
]


def token_of(following: str | None) -> str | None:
    """The token of the page that starts after the key `following`; None after the last page."""
    return None if following is None else next_token(following)


def text_filter(call: ApiRequest, name: str) -> str | None:
    """A text in the query; None if it is absent or empty. Raises BadRequest if it contains control characters."""
    value = call.query.get(name)
    if value and not value.isprintable():
        raise BadRequest(f"Invalid query parameter {name}={value[:80]!r}: it contains a control character")
    return value or None
