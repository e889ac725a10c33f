"""The base class of the catalog's endpoints (Iceberg REST)."""

from collections.abc import Callable
from urllib.parse import unquote_plus

from django.http import HttpRequest, HttpResponse

from lakewarden.database import begin_request
from lakewarden.errors import MethodNotAllowed
from lakewarden.http.request import ApiRequest
from lakewarden.http.request_life import answered

METHODS = ("get", "head", "post", "put", "delete")


class Endpoint:
    """A subclass has one method for each HTTP method that it serves: `def get(self, request, *, prefix, …)`.

    `request_life` describes the steps of a request. Path parameters are decoded one by one, so names may contain
    slashes.
    """

    @classmethod
    def as_view(cls, **settings: object) -> Callable[..., HttpResponse]:
        endpoint = cls(**settings)

        def view(request: HttpRequest, **path: str) -> HttpResponse:
            return endpoint.dispatch(request, path)

        return view

    def dispatch(self, request: HttpRequest, path: dict[str, str]) -> HttpResponse:
        return answered(request, lambda identifier: self._answer(request, path, identifier), finish=self.finish)

    def finish(self, response: HttpResponse) -> None:
        """Add what every answer needs, including errors; a subclass may extend it."""
        if response.status_code == MethodNotAllowed.status:
            response["Allow"] = ", ".join(self.allowed())

    def _answer(self, request: HttpRequest, path: dict[str, str], identifier: str) -> HttpResponse:
        method = getattr(self, (request.method or "").lower(), None)
        if (request.method or "").lower() not in METHODS or method is None:
            raise MethodNotAllowed(f"{request.method} is not allowed here; allowed are {', '.join(self.allowed())}")
        # may register a new user, which must not count as a change of this request
        call = ApiRequest.of(request, identifier)
        begin_request()
        return self.perform(call, method, {name: unquote_plus(part) for name, part in path.items()})

    def perform(self, call: ApiRequest, method: Callable[..., HttpResponse], path: dict[str, str]) -> HttpResponse:
        """Call the method; a subclass may extend it."""
        return method(call, **path)

    @classmethod
    def allowed(cls) -> list[str]:
        """The HTTP methods that the endpoint serves."""
        return [name.upper() for name in METHODS if hasattr(cls, name)]
