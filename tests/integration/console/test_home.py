import re

import pytest

from lakewarden import __version__
from tenants.models import Warehouse
from tests.servers.asgi_client import AsgiClient


def test_root_leads_to_the_console(client: AsgiClient) -> None:
    answer = client.get("/")
    assert (answer.status, answer.headers["location"]) == (302, "/console")


def test_home_says_version_state_and_address(client: AsgiClient) -> None:
    answer = client.get("/console", headers={"host": "lake.example.org:8443"})
    page = answer.body.decode()
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert f"version {__version__}" in page
    assert "Ready" in page
    assert "http://lake.example.org:8443/catalog" in page
    assert "&lt;client secret&gt;" in page


def test_home_says_when_the_database_is_down(client: AsgiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.pages.start.database_answers", lambda: False)
    page = client.get("/console").body.decode()
    assert "The database cannot be reached" in page
    assert "lakewarden doctor" in page


def test_home_tells_nothing_of_the_tenants(client: AsgiClient, warehouse: Warehouse) -> None:
    page = client.get("/console").body.decode()
    assert str(warehouse.id) not in page
    assert warehouse.location not in page
    assert "Default Project" not in page


def test_a_hostile_host_header_is_escaped(client: AsgiClient) -> None:
    page = client.get("/console", headers={"host": "<script>alert(1)</script>"}).body.decode()
    assert "<script>" not in page


@pytest.mark.parametrize("path", ["/console", "/console/static/style.css"])
def test_pages_forbid_what_they_do_not_need(client: AsgiClient, path: str) -> None:
    headers = client.get(path).headers
    assert "default-src 'self'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == headers["cross-origin-opener-policy"] == "same-origin"


def test_page_loads_nothing_from_elsewhere_and_has_no_inline_style_or_script(client: AsgiClient) -> None:
    page = client.get("/console").body.decode()
    for part in ("<script>", "<style", "style=", "//cdn", "@import"):
        assert part not in page
    assert set(re.findall(r'src="(/[^/"]+/[^/"]+)/', page)) == {"/console/static"}
    assert len(re.findall("src=", page)) == len(re.findall('src="/console/static/', page))


def test_style_is_kept_by_browsers_until_it_changes(client: AsgiClient) -> None:
    address = re.findall(r'href="(/[^"]+[.]css)"', client.get("/console").body.decode())[0]
    first = client.get(address)
    assert (first.status, first.headers["content-type"]) == (200, 'text/css; charset="utf-8"')
    assert (len(first.body), first.headers["cache-control"]) == (
        int(first.headers["content-length"]),
        "max-age=60, public",
    )
    again = client.get(address, headers={"if-none-match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("name", ["none.css", "../pages.py", "%2e%2e/pages.py", "..%2fpages.py", "", "/etc/passwd"])
def test_no_other_file_is_served(client: AsgiClient, name: str) -> None:
    assert client.get(f"/console/static/{name}").status == 404


def test_the_answers_of_apis_do_not_pass_the_guard_of_pages(client: AsgiClient) -> None:
    headers = client.get("/catalog/v1/config").headers
    assert not {"content-security-policy", "cross-origin-opener-policy", "x-frame-options"} & headers.keys()


def test_home_is_for_reading_only(client: AsgiClient) -> None:
    assert client.post("/console").status == 405
