"""The base of all management views: Django REST framework with the catalog's authentication, request ids and errors."""

from typing import Any, NoReturn, TypeVar, cast
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakewarden.context import RequestContext
from lakewarden.database import begin_request
from lakewarden.errors import BadRequest, MethodNotAllowed
from lakewarden.http.request import ApiRequest
from lakewarden.http.request_life import answered
from lakewarden.paging import Page
from management import idempotent_requests
from management.base_serializers import Body
from tenants import access

B = TypeVar("B", bound=Body)

DEFAULT_PAGE_SIZE = 100


class ManagementView(APIView):
    """A subclass has one method for each HTTP method that it serves; it reads `self.call` and returns a `Response`.

    `request_life` describes the steps of a request. A mutation with an `Idempotency-Key` goes through
    `idempotent_requests`.
    """

    # without OPTIONS: asgi.py answers CORS preflights, and DRF's description of views is not offered
    http_method_names = ["get", "head", "post", "put", "delete"]
    call: ApiRequest
    identifier: str

    def dispatch(self, request: HttpRequest, *_: Any, **kwargs: Any) -> HttpResponseBase:  # noqa: ANN401 Django's signature
        path = {name: unquote(part) for name, part in kwargs.items()}
        return answered(request, lambda identifier: self._attempt(request, path, identifier), finish=self._finish)

    def _attempt(self, request: HttpRequest, path: dict[str, str], identifier: str) -> HttpResponse:
        self.identifier = identifier
        response = cast("HttpResponse", super().dispatch(request, **path))  # no view streams its response
        return response.render() if isinstance(response, Response) else response

    def _finish(self, response: HttpResponse) -> None:
        # DRF sends it with every response, so it is added to errors, too
        response["Allow"] = ", ".join(self.allowed_methods)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 DRF's signature
        super().initial(request, *args, **kwargs)
        # DRF has no public attribute for Django's request
        self.call = ApiRequest.of(request._request, self.identifier)  # noqa: SLF001
        if self.call.method in idempotent_requests.MUTATING and idempotent_requests.HEADER in self.call.headers:
            self._repeatable(self.call.method.lower())
        begin_request()

    def _repeatable(self, name: str) -> None:
        """Replace the method, which DRF looks up next, by one that handles the request's Idempotency-Key."""
        method = getattr(type(self), name, type(self).http_method_not_allowed)

        def handler(request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 DRF's signature
            def run(call: ApiRequest) -> Response:
                self.call = call
                response: Response = method(self, request, *args, **kwargs)
                return response

            return idempotent_requests.once(self.call, run)

        setattr(self, name, handler)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002, ARG002 DRF's signature
        """Always select JSON, so no request is refused because of its `Accept` header."""
        return super().perform_content_negotiation(request, force=True)

    def http_method_not_allowed(self, request: HttpRequest | Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401, ARG002 DRF's signature
        # called after authentication, so a caller without credentials gets 401 rather than 405
        raise MethodNotAllowed(f"{request.method} is not allowed here; allowed are {', '.join(self.allowed_methods)}")

    def handle_exception(self, exc: Exception) -> NoReturn:
        raise exc  # `answered` renders it

    @property
    def context(self) -> RequestContext:
        return self.call.context

    @property
    def project_id(self) -> str:
        """The project in `x-project-id`, else the default project. Raises ProjectIdMissing if there is none."""
        return access.project_id_of(self.context)

    def project_named(self, older: str | None, *, member: str) -> str:
        """The project of a request that may also name it in the older way, in a member or parameter.

        Raises BadRequest if that is not the project of `x-project-id`, ProjectIdMissing if there is none.
        """
        if older and self.context.project_id and older != self.context.project_id:
            raise BadRequest(
                f"{member} is {older[:80]!r} and x-project-id {self.context.project_id[:80]!r}: send one of them"
            )
        return older or self.project_id

    @property
    def page(self) -> Page:
        """The requested page of a list: `pageToken` and `pageSize` (default: 100)."""
        return Page.parse({"pageSize": str(DEFAULT_PAGE_SIZE), **self.call.query})

    def body(self, shape: type[B]) -> B:
        """The validated JSON body. Raises BadRequest, which names the invalid member."""
        return shape.parse(self.call.decode(dict[str, Any]))
