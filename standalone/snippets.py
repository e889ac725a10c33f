"""What to paste after `lakewarden dev`: each reads addresses and credentials from the ready file, and shows none."""

import shlex
from pathlib import Path
from string import Template
from typing import Final

_PYICEBERG: Final = Template("""\
import json, pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
ready = json.load(open($ready))
engine = ready["engine"]
catalog = RestCatalog(
    "lake", uri=ready["catalog_uri"], warehouse=ready["warehouse"]["name"], scope=engine["scope"],
    credential=engine["client_id"] + ":" + engine["client_secret"],
    **{"oauth2-server-uri": ready["token_endpoint"]},
)
catalog.create_namespace_if_not_exists("tried")
rows = pa.table({"id": [1, 2, 3]})
catalog.create_table_if_not_exists("tried.numbers", rows.schema).append(rows)
print(catalog.load_table("tried.numbers").scan().to_arrow())
""")
_DUCKDB: Final = Template("""\
import duckdb, json
ready = json.load(open($ready))
engine = ready["engine"]
duck = duckdb.connect()
for extension in ("avro", "httpfs", "iceberg"):
    duck.install_extension(extension)
    duck.load_extension(extension)
duck.execute(f\"\"\"CREATE SECRET lake (TYPE iceberg,
    CLIENT_ID '{engine["client_id"]}', CLIENT_SECRET '{engine["client_secret"]}',
    OAUTH2_SCOPE '{engine["scope"]}', OAUTH2_SERVER_URI '{ready["token_endpoint"]}')\"\"\")
duck.execute(f\"\"\"ATTACH '{ready["warehouse"]["name"]}' AS lake
    (TYPE iceberg, SECRET lake, ENDPOINT '{ready["catalog_uri"]}')\"\"\")
print(duck.sql("SELECT count(*), sum(id) FROM lake.tried.numbers"))
""")


def spark(ready_file: Path) -> str:
    """A shell command."""
    return f"lakewarden spark-sql --ready-file {shlex.quote(str(ready_file))}"


def pyiceberg(ready_file: Path) -> str:
    """A script that writes and reads a table."""
    return _PYICEBERG.substitute(ready=repr(str(ready_file)))


def duckdb(ready_file: Path) -> str:
    """A script that reads the table of `pyiceberg`; it fetches DuckDB's extensions."""
    return _DUCKDB.substitute(ready=repr(str(ready_file)))
