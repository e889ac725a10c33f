from dataclasses import replace

import pytest

from lakewarden.errors import InvalidArgument
from pipeline.spark.catalogs import RestCatalog, spark_settings

CATALOG = RestCatalog(
    name="lake",
    uri="http://127.0.0.1:1/catalog",
    warehouse="demo",
    credential="engine:hidden",
    oauth2_server_uri="http://127.0.0.1:1/token",
    scope="lakewarden",
)


def test_settings_are_icebergs_properties_below_the_catalogs_name() -> None:
    settings = CATALOG.spark_settings()
    assert settings.pop("spark.sql.catalog.lake") == "org.apache.iceberg.spark.SparkCatalog"
    assert settings.pop("spark.sql.catalog.lake.rest.auth.type") == "oauth2"
    assert settings == {f"spark.sql.catalog.lake.{key}": value for key, value in CATALOG.properties().items()}
    assert settings["spark.sql.catalog.lake.oauth2-server-uri"] == "http://127.0.0.1:1/token"


def test_extra_properties_win() -> None:
    assert replace(CATALOG, extra={"scope": "other"}).properties()["scope"] == "other"


def test_the_first_catalog_is_the_default() -> None:
    settings = spark_settings([CATALOG, replace(CATALOG, name="second")])
    assert settings["spark.sql.defaultCatalog"] == "lake"
    assert "spark.sql.catalog.second.uri" in settings


def test_without_catalogs_there_is_no_default() -> None:
    assert "spark.sql.defaultCatalog" not in spark_settings([])


def test_the_secret_is_not_shown() -> None:
    assert "hidden" not in repr(CATALOG)


@pytest.mark.parametrize("name", ["", "my-lake", "1lake", "lake.a", "lake\n"])
def test_a_name_that_sql_cannot_say_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="letters, digits and _"):
        replace(CATALOG, name=name)


def test_a_credential_without_a_secret_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidArgument) as refusal:
        replace(CATALOG, credential="hidden")
    assert "hidden" not in str(refusal.value)
