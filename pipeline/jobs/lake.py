"""A warehouse's tables as Spark and Iceberg's Java client see them: what the flush needs, and no more.

Statements are Spark's SQL. Metadata are taken from the Java client's table in one call across py4j.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from pipeline.jobs.data_files import NewFile, WrittenFiles
from pipeline.jobs.metadata import KIND, LOG_ID, Metadata
from pipeline.transforms.columns import Change, Column, quoted, sql_type

Identifier = tuple[str, ...]

_FORMAT = {"format-version": "2", "write.parquet.compression-codec": "zstd"}
_MERGE_ON_READ = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "changelog": _FORMAT,
    "mirror": _FORMAT | _MERGE_ON_READ,
    "rejected": _FORMAT,
    "deleted": _FORMAT,
}
MAX_PATHS = 1000
_MAX_ANCESTORS = 20
_MISSING = {"TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"}


class TableChanged(Exception):
    """Another engine has changed a table since files were made for it, or we have written to it."""


@dataclass(frozen=True, slots=True)
class Lake:
    """One catalog of a session. `catalog` is its name in SQL; `log`: the log whose positions are looked for."""

    spark: SparkSession
    catalog: str
    log: UUID

    def name(self, table: Identifier) -> str:
        return quoted(self.catalog, *table)

    def metadata(self, table: Identifier) -> Metadata | None:
        """What there is to know of the newest metadata; None if there is no such table.

        Of the snapshots only those back to the newest one with a position: a table has thousands of them.
        """
        found = self._java_table(table)
        return None if found is None else self._described(found)

    def properties_of_namespace(self, namespace: Sequence[str]) -> Mapping[str, str]:
        """Empty if it does not exist."""
        catalog = self._java_catalog()
        levels = self._strings(namespace)
        if not catalog.namespaceExists(levels):
            return {}
        return dict(catalog.loadNamespaceMetadata(levels))

    def create(self, table: Identifier, columns: Sequence[Column], *, kind: str, partitions: str = "") -> None:
        """The table, and its namespace, unless somebody else was quicker."""
        for length in range(1, len(table)):
            if not self._namespace_exists(table[:length]):
                self._sql(f"CREATE NAMESPACE IF NOT EXISTS {self.name(table[:length])}")
        listed = ", ".join(f"{quoted(c.name)} {sql_type(c.type)}{' NOT NULL' if c.required else ''}" for c in columns)
        properties = {KIND: kind, **PROPERTIES[kind]}
        pairs = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self._sql(
            f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({listed}) USING iceberg "
            f"{f'PARTITIONED BY ({partitions})' if partitions else ''} TBLPROPERTIES ({pairs})"
        )

    def change(self, table: Identifier, changes: Sequence[Change]) -> None:
        """Add the columns in one commit; widen those that are to be widened, in one each."""
        added = [f"{quoted(*each.path)} {sql_type(each.type)}" for each in changes if not each.widens]
        if added:
            self._sql(f"ALTER TABLE {self.name(table)} ADD COLUMNS ({', '.join(added)})")
        for each in changes:
            if each.widens:
                column = f"{quoted(*each.path)} TYPE {sql_type(each.type)}"
                self._sql(f"ALTER TABLE {self.name(table)} ALTER COLUMN {column}")

    def append(self, table: Identifier, rows: DataFrame) -> None:
        """One commit. Rows are written where they are: no shuffle, a file for each task and partition."""
        options = {"fanout-enabled": "true", "distribution-mode": "none"}
        rows.writeTo(self.name(table)).options(**options).append()

    def append_files(
        self, table: Identifier, files: Sequence[NewFile], *, made_for: Metadata, summary: Mapping[str, str]
    ) -> Metadata:
        """One commit of files that were made in memory; returns the table's metadata after it.

        Raises TableChanged, before anything is written, unless the table is as the files were made for. What was
        written is deleted after a failure, unless it may be in the table nevertheless.
        """
        found = self._java_table(table)
        if found is None or not self._described(found).is_as(made_for, self.log):
            raise TableChanged(".".join(table))
        written = WrittenFiles(self._jvm, found)
        with written.removed_after_failure():
            operation = found.newAppend()
            for name, value in summary.items():
                operation.set(name, value)
            for each in files:
                operation.appendFile(written.write(each))
        with written.removed_after_failure(only_cleanable=True):
            operation.commit()
        return self._described(found)

    def merge(self, table: Identifier, rows: DataFrame, columns: Sequence[str]) -> None:
        """One commit. `rows`: one for each row id, with `_cdc_operation`; older ones than the table's are left out."""
        view = f"lakewarden_{self.catalog}_{abs(hash(table)):x}"
        rows.createOrReplaceTempView(view)
        names = [quoted(name) for name in columns]
        newer = "n._cdc_sequence >= coalesce(t._cdc_sequence, n._cdc_sequence)"
        try:
            self._sql(
                f"MERGE INTO {self.name(table)} AS t USING {quoted(view)} AS n ON t._cdc_row_id = n._cdc_row_id "  # noqa: S608  quoted
                f"WHEN MATCHED AND {newer} AND n._cdc_operation = 'DELETE' THEN DELETE "
                f"WHEN MATCHED AND {newer} THEN UPDATE SET {', '.join(f't.{name} = n.{name}' for name in names)} "
                f"WHEN NOT MATCHED AND n._cdc_operation <> 'DELETE' THEN "
                f"INSERT ({', '.join(names)}) VALUES ({', '.join(f'n.{name}' for name in names)})"
            )
        finally:
            self.spark.catalog.dropTempView(view)

    def table(self, table: Identifier) -> DataFrame:
        """Its rows as they are now."""
        return self.spark.table(self.name(table))

    def added_files(self, table: Identifier, snapshot_id: int) -> list[str]:
        """The paths of the data files that a snapshot added, which lie in its manifests; the first thousand."""
        found = self._java_table(table)
        snapshot = found.snapshot(snapshot_id) if found is not None else None
        paths: list[str] = []
        if snapshot is not None and found is not None:
            for each in snapshot.addedDataFiles(found.io()):
                paths.append(str(each.location()))
                if len(paths) >= MAX_PATHS:
                    break
        return paths

    def _described(self, found: Any) -> Metadata:  # noqa: ANN401  py4j
        iceberg = self._jvm.org.apache.iceberg
        schema = msgspec.json.decode(iceberg.SchemaParser.toJson(found.schema()))
        history: list[Any] = []
        snapshot = found.currentSnapshot()
        while snapshot is not None and len(history) < _MAX_ANCESTORS:
            history.append(msgspec.json.decode(iceberg.SnapshotParser.toJson(snapshot)))
            if history[-1].get("summary", {}).get(LOG_ID) == str(self.log):
                break
            parent = snapshot.parentId()
            snapshot = None if parent is None else found.snapshot(parent)
        else:
            if snapshot is not None:
                whole = iceberg.TableMetadataParser.toJson(found.operations().current())
                history = msgspec.json.decode(whole)["snapshots"]
        current = found.currentSnapshot()
        return Metadata(
            {
                "table-uuid": str(found.uuid()),
                "format-version": iceberg.TableUtil.formatVersion(found),
                "partition-spec": msgspec.json.decode(iceberg.PartitionSpecParser.toJson(found.spec())),
                "sort-order": found.sortOrder().orderId(),
                "current-schema-id": schema["schema-id"],
                "schemas": [schema],
                "properties": dict(found.properties()),
                "current-snapshot-id": None if current is None else current.snapshotId(),
                "snapshots": history,
            }
        )

    def _java_table(self, table: Identifier) -> Any:  # noqa: ANN401  py4j
        self._activate()
        try:
            found = self._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
                self.spark._jsparkSession,  # noqa: SLF001  no public way
                self.name(table),
            )
        except AnalysisException as error:
            if error.getCondition() in _MISSING:
                return None
            raise
        return found

    def _activate(self) -> None:
        """Catalogs are looked up with the settings of the thread's session, which only SQL statements choose."""
        self._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.spark._jsparkSession)  # noqa: SLF001

    def _java_catalog(self) -> Any:  # noqa: ANN401  py4j
        self._activate()
        return self.spark._jsparkSession.sessionState().catalogManager().catalog(self.catalog)  # noqa: SLF001

    def _namespace_exists(self, namespace: Sequence[str]) -> bool:
        return bool(self._java_catalog().namespaceExists(self._strings(namespace)))

    @property
    def _jvm(self) -> Any:  # noqa: ANN401  py4j
        return self.spark._jvm  # noqa: SLF001  no public way

    def _strings(self, values: Sequence[str]) -> Any:  # noqa: ANN401  py4j
        gateway: Any = self.spark.sparkContext._gateway  # noqa: SLF001  no public way
        array = gateway.new_array(gateway.jvm.String, len(values))
        for number, value in enumerate(values):
            array[number] = value
        return array

    def _sql(self, statement: str) -> None:
        self.spark.sql(statement).collect()
