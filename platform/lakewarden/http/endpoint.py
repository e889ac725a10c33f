"""Base class of the plain endpoints (Iceberg REST): one request's life, written once."""

from collections.abc import Callable
from urllib.parse import unquote_plus

from django.http import HttpRequest, HttpResponse

from lakewarden.database import begin_request, may_be_repeated
from lakewarden.errors import MethodNotAllowed
from lakewarden.http.bridge import MEMORY
from lakewarden.http.errors import render_error
from lakewarden.http.request import ApiRequest, request_id
from lakewarden.http.responses import compress
from lakewarden.memory import held_by_request

METHODS = ("get", "head", "post", "put", "delete")


class Endpoint:
    """A subclass has one method for each HTTP method it serves: `def get(self, request, *, prefix, …)`.

    A request's life: request id → authentication → the path's parts decoded → the method (parse, `access`, a service
    verb, render) → errors rendered → compression. Path parts reach the method decoded, one by one, so that a name may
    hold slashes.
    """

    @classmethod
    def as_view(cls, **settings: object) -> Callable[..., HttpResponse]:
        endpoint = cls(**settings)

        def view(request: HttpRequest, **path: str) -> HttpResponse:
            return endpoint.dispatch(request, path)

        return view

    def dispatch(self, request: HttpRequest, path: dict[str, str]) -> HttpResponse:
        identifier = request_id(request)
        with held_by_request(request.META[MEMORY].caller):
            response = self._answered(request, path, identifier, again=True)
            response["X-Request-Id"] = identifier
            if response.status_code == MethodNotAllowed.status:
                response["Allow"] = ", ".join(self.allowed())
            compress(response, request.headers.get("accept-encoding", ""))
        return response

    def _answered(self, request: HttpRequest, path: dict[str, str], identifier: str, *, again: bool) -> HttpResponse:
        try:
            return self._answer(request, path, identifier)
        except Exception as error:  # noqa: BLE001 the one place where every error becomes an answer
            if not (again and may_be_repeated(error)):
                return render_error(error, identifier)
        return self._answered(request, path, identifier, again=False)

    def _answer(self, request: HttpRequest, path: dict[str, str], identifier: str) -> HttpResponse:
        method = getattr(self, (request.method or "").lower(), None)
        if (request.method or "").lower() not in METHODS or method is None:
            raise MethodNotAllowed(f"{request.method} is not allowed here: {', '.join(self.allowed())}")
        call = ApiRequest.of(request, identifier)  # a caller who is new here is written down by it
        begin_request()
        return self.perform(call, method, {name: unquote_plus(part) for name, part in path.items()})

    def perform(self, call: ApiRequest, method: Callable[..., HttpResponse], path: dict[str, str]) -> HttpResponse:
        """Call the method; a subclass may put something around it."""
        return method(call, **path)

    @classmethod
    def allowed(cls) -> list[str]:
        """The HTTP methods that it serves."""
        return [name.upper() for name in METHODS if hasattr(cls, name)]
