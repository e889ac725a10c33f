"""Forks Spark's Python workers as pyspark's own daemon does; Spark starts it (`spark.python.daemon.module`).

What the pipeline's workers need is imported before they are forked. A worker that has to import it by itself takes
seconds of processor time, and Spark ends workers that are idle for a minute.
"""

import gc
import sys
from pathlib import Path
from zipimport import zipimporter

from pyspark.daemon import manager

_USUAL = "pyspark.worker"
"""The module of the workers that run tasks. Spark starts other daemons, too, for a single call each."""


def prepare() -> None:
    """Import everything, and let the collector, which runs after each task, pass it over."""
    import pyarrow as pa  # noqa: PLC0415  not for the other daemons

    import pipeline.sources.postgres_log  # noqa: PLC0415
    import pipeline.transforms.files  # noqa: F401, PLC0415

    pa.array([1])  # the first array imports pandas, where it is installed
    keep_directories()
    gc.collect()
    gc.freeze()


def keep_directories() -> None:
    """Let the finders of archives read their archives again only when these have changed.

    pyspark invalidates all finders at the start of each task. There is one for each package in Spark's own archives,
    and each would read the whole directory of its archive: 50 ms of processor time together.
    """
    for finder in list(sys.path_importer_cache.values()):
        if isinstance(finder, zipimporter):
            _keep_directory(finder)


def _keep_directory(finder: zipimporter) -> None:
    read_again, known = finder.invalidate_caches, _version(finder.archive)

    def invalidate_caches() -> None:
        if _version(finder.archive) != known:
            read_again()

    finder.invalidate_caches = invalidate_caches  # type: ignore[method-assign]


def _version(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


if __name__ == "__main__":
    if _USUAL in sys.argv:
        prepare()
    manager()  # type: ignore[no-untyped-call]
