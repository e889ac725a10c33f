import yaml

from console.snippets import Connection, all_snippets


def test_every_snippet_has_this_servers_address_and_no_other() -> None:
    for snippet in all_snippets(Connection("https://lake.example.org")):
        assert "https://lake.example.org/" in snippet.text
        assert snippet.text.count("://") == snippet.text.count("https://lake.example.org/")


def test_pyiceberg_snippet_is_a_catalog_in_yaml() -> None:
    [text] = [
        snippet.text for snippet in all_snippets(Connection("https://lake.example.org")) if snippet.title == "PyIceberg"
    ]
    catalog = yaml.safe_load(text)["catalog"]["lake"]
    assert (catalog["type"], catalog["uri"]) == ("rest", "https://lake.example.org/catalog")


def test_spark_snippet_has_a_name_and_a_value_on_each_line() -> None:
    [text] = [
        snippet.text for snippet in all_snippets(Connection("https://lake.example.org")) if snippet.title == "Spark"
    ]
    settings = dict(line.split(None, 1) for line in text.splitlines())
    assert settings["spark.sql.catalog.lake.uri"] == "https://lake.example.org/catalog"
    assert all(name.startswith("spark.sql.") for name in settings)
