"""The state of a table, from its metadata tables: how many files, of which sizes, how many snapshots.

No data file is read. Sizes are in bytes, times in milliseconds since 1970.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.maintenance.names import quoted

TO_POSITION = "lakewarden.ingest.to-position"
"""In the summary of a snapshot of the pipeline's: the last position of the log that it holds."""

DATA, POSITION_DELETES = 0, 1
DELETION_VECTORS = 3
"""From this format version on, there is one vector for each data file."""


@dataclass(frozen=True, slots=True)
class Count:
    files: int = 0
    bytes: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.files + other.files, self.bytes + other.bytes)


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one kind in one partition."""

    content: int
    all: Count
    small: Count


@dataclass(frozen=True, slots=True)
class Snapshot:
    id: int
    parent: int | None
    committed_ms: int
    has_position: bool


@dataclass(frozen=True, slots=True)
class Survey:
    """`heads`: the snapshots of branches and tags, main's first. `stored`: all files that any snapshot refers to.

    `merges_deletes`: whether the position deletes of several data files may share a file. By default Spark writes one
    for each data file, of which there is nothing to merge; they go when the data file is rewritten.
    """

    merges_deletes: bool
    groups: Sequence[Group]
    manifests: Count
    snapshots: Sequence[Snapshot]
    heads: Sequence[int]
    stored: Count

    def count(self, content: int) -> Count:
        return sum((each.all for each in self.groups if each.content == content), Count())

    @property
    def live(self) -> Count:
        """What the current snapshot refers to, deletes included."""
        return sum((each.all for each in self.groups), Count())

    @property
    def history(self) -> Sequence[Snapshot]:
        """The current snapshot and its ancestors, the newest first."""
        known: dict[int | None, Snapshot] = {each.id: each for each in self.snapshots}
        found, identifier = [], self.heads[0] if self.heads else None
        while (snapshot := known.pop(identifier, None)) is not None:
            found.append(snapshot)
            identifier = snapshot.parent
        return found

    @property
    def position_kept_ms(self) -> int | None:
        """When the newest snapshot with a position of the log was made.

        A pipeline that has crashed reads there what it has written. If the snapshot were gone, it would write it again.
        """
        return next((each.committed_ms for each in self.history if each.has_position), None)

    def expirable(self, *, older_than_ms: int, keep: int) -> int:
        """The number of snapshots that an expiration removes."""
        kept = {each.id for each in self.history[:keep]} | set(self.heads)
        return sum(each.committed_ms < older_than_ms and each.id not in kept for each in self.snapshots)


def survey(
    spark: SparkSession, catalog: str, table: Sequence[str], properties: Mapping[str, str], *, small: int
) -> Survey:
    """`small`: data files below this size count as small."""

    def read(kind: str) -> DataFrame:
        return spark.table(quoted(catalog, *table, kind))

    snapshots = [
        Snapshot(row.snapshot_id, row.parent_id, row.ms, TO_POSITION in (row.summary or {}))
        for row in read("snapshots")
        .select("snapshot_id", "parent_id", "summary", f.unix_millis("committed_at").alias("ms"))
        .collect()
    ]
    refs = read("refs").select("name", "snapshot_id").collect()
    return Survey(
        merges_deletes=properties.get("write.delete.granularity") == "partition"
        and int(properties.get("format-version", "2")) < DELETION_VECTORS,
        groups=_groups(read("files"), small),
        manifests=_count(read("manifests").select(f.col("path").alias("file_path"), f.col("length").alias("size"))),
        snapshots=snapshots,
        heads=[row.snapshot_id for row in sorted(refs, key=lambda row: row.name != "main")],
        stored=_count(read("all_files").select("file_path", f.col("file_size_in_bytes").alias("size")).distinct()),
    )


def _groups(files: DataFrame, small: int) -> list[Group]:
    partition: Column = f.to_json("partition") if "partition" in files.columns else f.lit("")
    size, is_small = f.col("file_size_in_bytes"), f.col("file_size_in_bytes") < small
    rows = (
        files.groupBy("content", "spec_id", partition.alias("place"))
        .agg(
            f.count("*").alias("files"),
            f.sum(size).alias("bytes"),
            f.count_if(is_small).alias("small_files"),
            f.sum(f.when(is_small, size).otherwise(0)).alias("small_bytes"),
        )
        .collect()
    )
    return [Group(row.content, Count(row.files, row.bytes), Count(row.small_files, row.small_bytes)) for row in rows]


def _count(files: DataFrame) -> Count:
    (row,) = files.agg(f.count("*").alias("files"), f.sum("size").alias("bytes")).collect()
    return Count(row.files, row.bytes or 0)
