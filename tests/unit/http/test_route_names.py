"""Requests are measured by route: paths that callers make up must not become names."""

import pytest

from lakewarden.http.route_names import RouteNames

NAMES = RouteNames()


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("GET", b"/catalog/v1/config", "GET /catalog/v1/config"),
        (
            "HEAD",
            b"/catalog/v1/0197/namespaces/a%1Fb/tables/t%2F1",
            "HEAD /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}",
        ),
        ("GET", b"/management/whoami", "GET /management/v1/whoami"),
        ("GET", b"/made/up", None),
        ("GET", b"/catalog/v1//namespaces", None),
        ("GET", b"/", "GET /"),
        ("BREW", b"/catalog/v1/config", None),
    ],
)
def test_a_path_has_the_name_of_its_route_or_none(method: str, path: bytes, name: str | None) -> None:
    assert NAMES.name(method, path) == name
