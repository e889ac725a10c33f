"""`ApiRequest`, which endpoints receive: the authenticated context, query, headers and body of a request."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self, TypeVar
from uuid import UUID

from django.http import HttpRequest

from lakewarden import backends, config
from lakewarden.authn.interface import VerifiedToken
from lakewarden.context import Caller, PrincipalId, RequestContext
from lakewarden.errors import BadRequest
from lakewarden.http.bridge import MEMORY
from lakewarden.http.codings import unpacked
from lakewarden.http.json_bodies import decode
from lakewarden.ids import new_id_text

T = TypeVar("T")

CONTEXT = "lakewarden.context"
"""The key in `HttpRequest.META` of the request's context, for the middleware that counts and audits."""

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:\[\]-]+/[A-Za-z0-9._~/-]*")
_DEFAULT_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """`path` is as the client sent it, percent-encoded, with the query; `body` is decompressed."""

    method: str
    path: str
    context: RequestContext
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    base_uri: str

    @classmethod
    def of(cls, request: HttpRequest, identifier: str) -> Self:
        """Authenticate and read `request`. Raises what `authenticated` and `codings.unpacked` raise."""
        return cls(
            method=request.method or "",
            path=request.get_full_path(),
            context=authenticated(request, identifier),
            query=request.GET.dict(),
            headers=request.headers,
            body=unpacked(
                request.body,
                request.headers.get("content-encoding", ""),
                limit=config.current().server.max_body_bytes,
                grow=request.META[MEMORY].grow,
            ),
            base_uri=base_uri(request),
        )

    def decode(self, shape: type[T], *, may_be_large: bool = False) -> T:
        """The JSON body as `shape`; raises as `json_bodies.decode`."""
        return decode(self.body, shape, may_be_large=may_be_large)

    def flag(self, name: str) -> bool | None:
        """A boolean query parameter, None if it is absent; raises BadRequest for anything but `true` and `false`."""
        value = self.query.get(name)
        if value is None:
            return None
        if value.lower() not in {"true", "false"}:
            raise BadRequest(f"Invalid query parameter {name}={value!r}: true or false is expected")
        return value.lower() == "true"


def request_id(request: HttpRequest) -> str:
    return clean_request_id(request.headers.get("x-request-id", ""))


def clean_request_id(given: str) -> str:
    """The client's `x-request-id` if it is valid (1 to 64 safe characters), else a new one."""
    return given if _REQUEST_ID.fullmatch(given) else new_id_text()


def authenticated(request: HttpRequest, identifier: str) -> RequestContext:
    """The context of an authenticated request. Raises NotAuthorized, or Unavailable if the provider does not answer."""
    source = request.META.get("REMOTE_ADDR", "")
    principal = backends.authenticator().authenticate(request.headers.get("authorization"), source=source)
    context = context_of(principal, request.headers.get, identifier)
    request.META[CONTEXT] = context
    return context


def context_of(principal: VerifiedToken, header: Callable[[str], str | None], identifier: str) -> RequestContext:
    """What a request of `principal` carries; `header` finds one by its lower-case name.

    Raises BadRequest for an assumed role that is not the id of one.
    """
    caller = Caller(
        id=PrincipalId(principal.id),
        name=principal.name,
        email=principal.email,
        kind=principal.kind,
        token_roles=principal.token_roles,
        assumed_role=assumed_role(header("x-assume-role")),
    )
    return RequestContext(
        caller=caller,
        request_id=identifier,
        user_agent=header("user-agent") or "",
        project_id=header("x-project-id") or header("x-project-ident"),
    )


def assumed_role(header: str | None) -> str | None:
    """The id of the role in `x-assume-role`, in the database's spelling. Raises BadRequest for an invalid id."""
    if not header:
        return None
    try:
        return str(UUID(header))
    except ValueError:
        raise BadRequest(f"Invalid header x-assume-role: {header[:80]!r} is not the id of a role") from None


def base_uri(request: HttpRequest) -> str:
    return base_uri_of(request.scheme or "http", request.headers.get)


def base_uri_of(scheme: str, header: Callable[[str], str | None]) -> str:
    """The server's address as the client knows it, without a trailing slash.

    It is the configured one, else what a trusted proxy says (`x-forwarded-host`, `-proto`, `-port`, `-prefix`; without
    `-proto` it is https), else that of the request. Raises BadRequest if there is no host.
    """
    settings = config.current().server
    if settings.base_uri:
        return settings.base_uri.rstrip("/")
    host, prefix = header("host"), ""
    if forwarded := _first(header("x-forwarded-host")):  # `http.proxies` has removed the headers of untrusted senders
        host, scheme = forwarded, _first(header("x-forwarded-proto")) or "https"
        prefix = _first(header("x-forwarded-prefix")).strip("/")
        port = _first(header("x-forwarded-port"))
        if port and ":" not in host.rpartition("]")[2] and port != _DEFAULT_PORTS.get(scheme):
            host = f"{host}:{port}"
    if not host or not _ADDRESS.fullmatch(f"{scheme}://{host}/{prefix}"):
        raise BadRequest("The request does not say which host it is for: send a Host header")
    return f"{scheme}://{host}/{prefix}".rstrip("/")


def _first(value: str | None) -> str:
    """The value of the outermost proxy, which is the first one: each further proxy appends its own after a comma."""
    return (value or "").partition(",")[0].strip()
