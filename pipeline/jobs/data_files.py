"""Data files made in memory, written with a table's own settings and credentials; for `Lake.append_files`."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException


@dataclass(frozen=True, slots=True)
class NewFile:
    """A Parquet file. `day`: days since 1970-01-01 of its partition, None in a table without partitions."""

    content: bytes
    day: int | None


class WrittenFiles:
    """Of one table, as Iceberg's Java client knows it."""

    def __init__(self, jvm: Any, table: Any) -> None:  # noqa: ANN401  py4j
        self._jvm = jvm
        self._table = table
        self._io = table.io()
        self._metrics = jvm.org.apache.iceberg.MetricsConfig.forTable(table)
        self._paths: list[str] = []

    def write(self, file: NewFile) -> Any:  # noqa: ANN401  py4j
        """Returns Iceberg's `DataFile`, with the metrics of the file's own footer."""
        iceberg = self._jvm.org.apache.iceberg
        spec, locations = self._table.spec(), self._table.locationProvider()
        builder = iceberg.DataFiles.builder(spec)
        name = f"{len(self._paths):05d}-{uuid4()}.parquet"
        if file.day is None:
            path = locations.newDataLocation(name)
        else:
            partition = iceberg.PartitionData(spec.partitionType())
            partition.set(0, file.day)
            builder = builder.withPartition(partition)
            path = locations.newDataLocation(spec, partition, name)
        # the content goes to the JVM once, and its footer is read there
        content = iceberg.inmemory.InMemoryInputFile(path, file.content)
        metrics = iceberg.parquet.ParquetUtil.fileMetrics(content, self._metrics)
        self._paths.append(path)
        output = self._io.newOutputFile(path).create()
        try:
            content.newStream().transferTo(output)
        finally:
            output.close()
        return (
            builder.withPath(path)
            .withFormat("PARQUET")
            .withFileSizeInBytes(len(file.content))
            .withMetrics(metrics)
            .build()
        )

    @contextmanager
    def removed_after_failure(self, *, only_cleanable: bool = False) -> Iterator[None]:
        """`only_cleanable`: after errors that say that nothing was committed. After others, the files may be in use."""
        try:
            yield
        except (PySparkException, Py4JError) as error:
            if not only_cleanable or self._is_cleanable(error):
                self._remove()
            raise

    def _is_cleanable(self, error: Exception) -> bool:
        if not isinstance(error, Py4JJavaError):
            return False
        name = "org.apache.iceberg.exceptions.CleanableFailure"
        with suppress(Py4JError):
            return bool(self._jvm.py4j.reflection.TypeUtil.isInstanceOf(name, error.java_exception))
        return False

    def _remove(self) -> None:
        for path in self._paths:
            with suppress(PySparkException, Py4JError):  # orphan files are found by maintenance
                self._io.deleteFile(path)
