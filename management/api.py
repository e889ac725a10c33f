"""The base of every management endpoint: Django REST framework with our authentication, request ids and errors."""

from typing import Any, TypeVar
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from lakewarden.context import RequestContext
from lakewarden.database import begin_request, may_be_repeated
from lakewarden.errors import MethodNotAllowed
from lakewarden.http.errors import render_error
from lakewarden.http.request import ApiRequest, request_id
from lakewarden.http.responses import compress
from lakewarden.paging import Page
from management import idempotent_requests
from management.base_serializers import Body
from tenants import access

B = TypeVar("B", bound=Body)

DEFAULT_PAGE_SIZE = 100


class _BeginAgain(Exception):
    """Nothing was changed, by no fault of the request's (see `may_be_repeated`): it is begun once more."""


class ManagementView(APIView):
    """A subclass has one method for each HTTP method it serves, which reads `self.call` and answers with `Response`.

    A request's life: request id → the path's parts decoded → authentication → the method (parse, `access`, a service
    verb, render) → errors rendered → compression. Errors of every kind are the same shape as the catalog's. A mutation
    with an `Idempotency-Key` goes through `idempotent_requests`.
    """

    # browsers' preflight and DRF's self-description are not served
    http_method_names = ["get", "head", "post", "put", "delete"]
    call: ApiRequest
    is_repeated = False

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 Django's signature
        super().setup(request, *args, **kwargs)
        self.identifier = request_id(request)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:  # noqa: ANN401 Django's signature
        decoded = {name: unquote(part) for name, part in kwargs.items()}
        try:
            response = super().dispatch(request, *args, **decoded)
        except _BeginAgain:
            response = super().dispatch(request, *args, **decoded)
        response["X-Request-Id"] = self.identifier
        return response

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 DRF's signature
        super().initial(request, *args, **kwargs)
        # DRF has no public name for Django's own request
        self.call = ApiRequest.of(request._request, self.identifier)  # noqa: SLF001
        if self.call.method in idempotent_requests.MUTATING and idempotent_requests.HEADER in self.call.headers:
            self._repeatable(self.call.method.lower())
        begin_request()

    def _repeatable(self, name: str) -> None:
        """Have DRF, which looks the method up next, call one that heeds the request's Idempotency-Key."""
        method = getattr(type(self), name, type(self).http_method_not_allowed)

        def handler(request: Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 DRF's signature
            def run(call: ApiRequest) -> Response:
                self.call = call
                response: Response = method(self, request, *args, **kwargs)
                return response

            return idempotent_requests.once(self.call, run)

        setattr(self, name, handler)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002, ARG002 DRF's signature
        """JSON for everybody: what a client says it accepts is no reason to refuse it."""
        return super().perform_content_negotiation(request, force=True)

    def http_method_not_allowed(self, request: HttpRequest | Request, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401, ARG002 DRF's signature
        # before a method is looked up the caller is authenticated: 401 comes first
        raise MethodNotAllowed(f"{request.method} is not allowed here: {', '.join(self.allowed_methods)}")

    def handle_exception(self, exc: Exception) -> HttpResponse:  # type: ignore[override]  # any HttpResponse will do
        if not self.is_repeated and may_be_repeated(exc):
            self.is_repeated = True
            raise _BeginAgain from exc
        return render_error(exc, self.identifier)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:  # noqa: ANN401 DRF's signature
        final = super().finalize_response(request, response, *args, **kwargs)
        accepted = request.headers.get("accept-encoding", "")
        if isinstance(final, Response):  # a rendered error is a plain HttpResponse
            final.add_post_render_callback(lambda rendered: compress(rendered, accepted))
        return final

    @property
    def context(self) -> RequestContext:
        return self.call.context

    @property
    def project_id(self) -> str:
        """The project that the request is about: `x-project-id`, else the default project; raises ProjectIdMissing."""
        return access.project_id_of(self.context)

    @property
    def page(self) -> Page:
        """The page of a list that is asked for: `pageToken` and `pageSize` (100 when it is not said)."""
        return Page.parse({"pageSize": str(DEFAULT_PAGE_SIZE), **self.call.query})

    def body(self, shape: type[B]) -> B:
        """The validated JSON body. Raises BadRequest that names the field that is wrong."""
        return shape.parse(self.call.decode(dict[str, Any]))
