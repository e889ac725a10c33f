"""What the pipeline needs to be told."""

import pytest

from lakewarden import config
from lakewarden.errors import BadRequest
from pipeline.jobs.options import Options

COMPLETE = {
    "LAKEWARDEN__DATABASE__URL": "postgresql://u:p@h/d",
    "LAKEWARDEN__PIPELINE__CATALOG_URI": "https://lake.example.org/catalog",
    "LAKEWARDEN__PIPELINE__OAUTH2_SERVER_URI": "https://id.example.org/token",
    "LAKEWARDEN__PIPELINE__CLIENT_ID": "pipeline",
    "LAKEWARDEN__PIPELINE__CLIENT_SECRET": "hush",
}


def parse(**more: str) -> Options:
    settings = config.read({name: value for name, value in (COMPLETE | more).items() if value})
    return Options.parse(settings, master=None, warehouses=("demo", "p/other"), once=False)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(BadRequest, match="LAKEWARDEN__PIPELINE__CLIENT_SECRET must be set"):
        parse(LAKEWARDEN__PIPELINE__CLIENT_SECRET="")


def test_no_secret_is_shown() -> None:
    options = parse(LAKEWARDEN__PIPELINE__DATABASE_URL="postgresql://reader:secret@h/d")
    assert options.dsn == "postgresql://reader:secret@h/d"
    assert "secret@" not in repr(options)
    assert "hush" not in repr(options)


def test_warehouses_are_named_with_or_without_their_project() -> None:
    options = parse()
    assert [options.wants(name) for name in ("x/demo", "p/other", "x/other")] == [True, True, False]


def test_it_is_an_engine_that_asks_for_credentials_of_each_table() -> None:
    properties = parse().catalog("lake", warehouse="p/demo").properties()
    assert properties["credential"] == "pipeline:hush"
    assert properties["header.X-Iceberg-Access-Delegation"] == "vended-credentials"


def test_settings_of_spark_are_json() -> None:
    assert parse(LAKEWARDEN__PIPELINE__SPARK='{"spark.a.b": "c"}').config.spark == {"spark.a.b": "c"}
