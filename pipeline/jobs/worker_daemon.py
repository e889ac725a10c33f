"""Forks Spark's Python workers as pyspark's own daemon does; Spark starts it (`spark.python.daemon.module`).

What the pipeline's workers need is imported before they are forked. A worker that has to import it by itself takes
seconds of processor time, and Spark ends workers that are idle for a minute.
"""

import gc
import sys

from pyspark.daemon import manager

_USUAL = "pyspark.worker"
"""The module of the workers that run tasks. Spark starts other daemons, too, for a single call each."""


def prepare() -> None:
    """Import everything, and let the collector, which runs after each task, pass it over."""
    import pyarrow as pa  # noqa: PLC0415  not for the other daemons

    import pipeline.sources.postgres_log  # noqa: PLC0415
    import pipeline.transforms.rows  # noqa: F401, PLC0415

    pa.array([1])  # the first array imports pandas, where it is installed
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    if _USUAL in sys.argv:
        prepare()
    manager()  # type: ignore[no-untyped-call]
