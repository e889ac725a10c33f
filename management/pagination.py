"""What lists have in common: how a page is asked for, and the token of the next one; used by the list endpoints."""

from drf_spectacular.utils import OpenApiParameter

from lakewarden.errors import BadRequest
from lakewarden.http.request import ApiRequest
from lakewarden.paging import next_token

PAGE_PARAMETERS = [
    OpenApiParameter("pageToken", str, description="`next-page-token` of the page before."),
    OpenApiParameter("pageSize", int, description="At most so many; 100 when it is not said, 1000 at most."),
]


def token_of(following: str | None) -> str | None:
    """The token of the page behind the key `following`; None behind the last page."""
    return None if following is None else next_token(following)


def text_filter(call: ApiRequest, name: str) -> str | None:
    """A text of the query, or None when it is absent or empty. Raises BadRequest for one that no name can hold."""
    value = call.query.get(name)
    if value and not value.isprintable():
        raise BadRequest(f"Invalid query parameter {name}={value[:80]!r}: it holds a control character")
    return value or None
