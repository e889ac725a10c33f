"""Prints the rows of tables as JSON: `python -m tests.k8s.rows CATALOG TOKEN WAREHOUSE TABLE…`; PyIceberg reads them.

A program of its own, because it must run where the cluster's addresses are reached.
"""

import json
import sys

from pyiceberg.catalog.rest import RestCatalog


def main(uri: str, token: str, warehouse: str, *tables: str) -> None:
    catalog = RestCatalog(
        "lake",
        uri=uri,
        token=token,
        warehouse=warehouse,
        **{
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            "header.X-Iceberg-Access-Delegation": "vended-credentials",
        },
    )
    rows = {name: catalog.load_table(name).scan().to_arrow().to_pylist() for name in tables}
    json.dump(rows, sys.stdout, default=str)


if __name__ == "__main__":
    main(*sys.argv[1:])
