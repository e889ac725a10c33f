import pytest

from lakewarden.http.call_recording import template


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ("catalog/v1/<str:prefix>/namespaces", "GET /catalog/v1/{prefix}/namespaces"),
        ("management/v1/warehouse/<str:warehouse_id>", "GET /management/v1/warehouse/{warehouse_id}"),
        ("management/whoami", "GET /management/v1/whoami"),
        ("lakehouse/w/<warehouse>/v1/config", "GET /lakehouse/w/{warehouse}/v1/config"),
    ],
)
def test_a_route_is_counted_as_its_template(route: str, expected: str) -> None:
    assert template("GET", route) == expected
