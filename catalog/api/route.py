"""A row of the catalog's route table, from which URL patterns, hot routes and capabilities are derived."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.http import HttpResponse
from django.urls import URLPattern, path

from catalog.api.hot.dispatch import Hot
from lakewarden.http.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Route:
    """`template` is the path in the Iceberg REST specification; `settings` are arguments of the endpoint's constructor.

    `hot` answer what they can before Django is asked.
    """

    template: str
    endpoint: type[Endpoint]
    hot: Sequence[Hot] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def pattern(self) -> URLPattern:
        """For Django."""
        return django_path(self.template, self.endpoint.as_view(**self.settings))

    @property
    def capabilities(self) -> list[str]:
        """The capabilities in the form of the config: `<method> <template>`."""
        return [f"{method} {self.template}" for method in self.endpoint.allowed()]


def django_path(template: str, view: Callable[..., HttpResponse]) -> URLPattern:
    """Convert a path template of the specification to a Django route."""
    return path(template.removeprefix("/").replace("{", "<str:").replace("}", ">"), view)
