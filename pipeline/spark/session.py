"""A Spark session on REST catalogs from nothing but a Python environment; for the demo and the pipeline."""

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lakewarden.cache_folder import cache_folder
from pipeline.spark.catalogs import RestCatalog, local_settings, spark_settings
from pipeline.spark.gateway import gateway
from pipeline.spark.ivy import IvyFetcher, mirror_from_environment
from pipeline.spark.jars import CATALOG_JARS, provide_jars
from pipeline.spark.java import Java, find_java
from pipeline.spark.jvm import JvmOptions
from pipeline.spark.trust import trust_options

SECRETS = "(?i)secret|password|token|credential|access[.]?key"
"""Names of settings that Spark shows neither on its pages nor in event logs. Its own default lacks `credential`, where
a catalog has its client's secret.
"""


def silent(_line: str) -> None:
    """A progress callback that does nothing."""


def prepare(
    names: Sequence[str] = CATALOG_JARS,
    *,
    java: Java | None = None,
    progress: Callable[[str], None] = silent,
) -> tuple[Java, list[Path]]:
    """A Java and the jars of these short names, fetched if need be. Raises `JavaNotFound`, `JarUnavailable`."""
    java, cache = java or find_java(), cache_folder()
    fetcher = IvyFetcher(java, cache, mirror_from_environment(), progress)
    return java, provide_jars(names, fetch=fetcher, cache=cache)


@contextmanager
def session(
    catalogs: Sequence[RestCatalog],
    *,
    app_name: str,
    master: str = "local[*]",
    java: Java | None = None,
    jar_names: Sequence[str] = CATALOG_JARS,
    more_jars: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    options: JvmOptions | None = None,
    log: Path | None = None,
    progress: Callable[[str], None] = silent,
) -> Iterator[SparkSession]:
    """A session whose default catalog is the first of `catalogs`; its JVM is gone afterwards.

    `settings` win over ours; `java` is looked for unless given; `more_jars` are
    paths; `log` is the file for what the JVM writes.
    One session at a time in a process.
    Raises `SparkSetupFailed` and its kinds.
    """
    java, jars = prepare(jar_names, java=java, progress=progress)
    jars += map(Path, more_jars)
    chosen = options or JvmOptions()
    chosen = replace(chosen, extra=(*trust_options(java, cache=cache_folder()), *chosen.extra))
    local = master.startswith("local")
    every = {"spark.master": master, "spark.app.name": app_name, "spark.sql.session.timeZone": "UTC"}
    every["spark.redaction.regex"] = SECRETS
    every |= local_settings() if local else executors_jars(master, jars)
    every |= spark_settings(catalogs) | dict(settings or {})
    with gateway(java, jars=jars, options=chosen, local=local, log=log) as connection:
        yield from _running(connection, every)


def add_catalog(spark: SparkSession, catalog: RestCatalog) -> None:
    """To a running session, which may have it already.

    In the events of jobs, Spark hides only what has a name that is in the configuration it was started with.
    """
    started_with = spark.sparkContext._jsc.sc().conf()  # noqa: SLF001  no public way
    for key, value in catalog.spark_settings().items():
        if re.search(SECRETS, key):
            started_with.set(key, "")
        spark.conf.set(key, value)


def executors_jars(master: str, jars: Sequence[Path]) -> dict[str, str]:
    """How a cluster's executors get the jars: in Kubernetes they are in their image, as in the driver's."""
    if master.startswith("k8s://"):
        return {"spark.executor.extraClassPath": os.pathsep.join(map(str, jars))}
    return {"spark.jars": ",".join(map(str, jars))}


def _running(connection: Any, settings: Mapping[str, str]) -> Iterator[SparkSession]:  # noqa: ANN401  py4j
    """The settings go to Spark over py4j: a secret on a command line would be for everyone to read."""
    conf = SparkConf(loadDefaults=False)
    for key, value in settings.items():
        conf.set(key, value)
    try:
        with _own_interrupt():
            # what runs Python functions in executors: of the same environment as this process, unless told otherwise
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            SparkContext(conf=conf, gateway=connection)
        spark = SparkSession.builder.getOrCreate()
        yield spark
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        # A call is under way on the connection: asking for more would wait for its answer.
        connection.close()
        raise
    except BaseException:
        _stop(connection)
        raise
    else:
        _stop(connection)
    finally:
        _forget()


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """Keeps our handler of Ctrl-C: pyspark puts its own there, which breaks the connection that it uses."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, ours)


def _stop(connection: Any) -> None:  # noqa: ANN401  py4j
    with suppress(Py4JError, ConnectionError):  # the JVM may be gone already
        if (active := SparkSession.getActiveSession()) is not None:
            active.stop()
        connection.shutdown()


def _forget() -> None:
    """Lets pyspark forget the JVM, so that a later session starts a fresh one; pyspark has no public way."""
    SparkSession._instantiatedSession = None  # noqa: SLF001
    SparkContext._gateway = None  # noqa: SLF001
    SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
