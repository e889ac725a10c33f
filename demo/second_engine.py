"""Reads the demo's flights by PyIceberg with the same settings: proof that another engine sees the same table."""

from collections.abc import Sequence

import pyarrow.compute as pc
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError, RESTError

from demo.result import Totals
from lakewarden.errors import InternalError, Unavailable
from pipeline.spark.catalogs import RestCatalog


def totals(catalog: RestCatalog, identifier: str, columns: Sequence[str]) -> Totals:
    """Rows and sums of `columns` in the table `identifier` (`namespace.table`), at its current snapshot.

    Raises `Unavailable` when the catalog or the files cannot be read.
    """
    try:
        table = load_catalog(catalog.name, **catalog.properties()).load_table(identifier)
        data = table.scan(selected_fields=tuple(columns)).to_arrow()
    except (OSError, RESTError, NoSuchTableError) as error:
        raise Unavailable(f"PyIceberg could not read {identifier}: {error}") from error
    return Totals(data.num_rows, {name: pc.sum(data[name]).as_py() or 0 for name in columns})


def ensure_same(spark: Totals, second: Totals) -> None:
    """Raises `InternalError` unless both engines counted and summed the same whole numbers."""
    if spark != second:
        raise InternalError(f"Spark and PyIceberg read different tables: {spark} and {second}.")
