"""One row of the catalog's route table: everything that is served at a path is said there, and derived from it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from django.http import HttpResponse
from django.urls import URLPattern, path

from catalog.api.hot.call import Hot
from lakewarden.http.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class Route:
    """`template` is the Iceberg document's; `settings` are given to the endpoint when it is made.

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
        """As the config answer names them."""
        return [f"{method} {self.template}" for method in self.endpoint.allowed()]


def django_path(template: str, view: Callable[..., HttpResponse]) -> URLPattern:
    """A template of the Iceberg document, as Django writes it."""
    return path(template.removeprefix("/").replace("{", "<str:").replace("}", ">"), view)
