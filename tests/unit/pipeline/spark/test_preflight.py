from typing import Any

import pytest

from lakewarden.errors import Forbidden, LakewardenError, NotAuthorized, NotFound, Unavailable
from pipeline.spark.catalogs import RestCatalog
from pipeline.spark.preflight import config_refused, token_refused

CATALOG = RestCatalog("lake", "http://h/catalog", "demo", "engine:hidden", "http://h/token", "lakewarden")


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refused_secret_is_one_sentence_without_the_secret(status: int) -> None:
    error = token_refused(CATALOG, status, {"error": "invalid_client", "error_description": "wrong secret"})
    assert isinstance(error, NotAuthorized)
    assert "refused client engine" in error.message
    assert "wrong secret" in error.message
    assert "hidden" not in error.message


def test_a_token_endpoint_in_trouble_is_unavailable() -> None:
    assert isinstance(token_refused(CATALOG, 502, {}), Unavailable)


@pytest.mark.parametrize(
    ("status", "kind"), [(401, NotAuthorized), (403, Forbidden), (404, NotFound), (500, Unavailable)]
)
def test_a_refused_warehouse_keeps_the_servers_sentence(status: int, kind: type[LakewardenError]) -> None:
    error = config_refused(CATALOG, status, {"error": {"message": "Warehouse demo does not exist"}})
    assert isinstance(error, kind)
    assert error.message.endswith("'demo': Warehouse demo does not exist.")


@pytest.mark.parametrize("body", [{}, {"error": "text"}, {"error": {}}])
def test_an_answer_of_another_form_gives_a_sentence_too(body: dict[str, Any]) -> None:
    assert config_refused(CATALOG, 404, body).message.endswith("no reason given.")
