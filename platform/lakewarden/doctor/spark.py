"""Checks what the pipeline needs on this machine: Java and Spark's jars, if the extra `spark` is installed.

The pipeline's modules are imported by name, because the kernel must not depend on it: it may not be installed.
"""

import importlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from lakewarden.cache_folder import cache_folder
from lakewarden.config import Config
from lakewarden.doctor.findings import Finding, fail, ok, warn

_PIPELINE = "pipeline.spark"


def examine(_settings: Config) -> Iterator[Finding]:
    if find_spec("pyspark") is None or not is_present(_PIPELINE):
        yield ok("spark", "is not installed here: this machine can run the server, but not the pipeline")
        return
    yield _java()
    yield from _jars()


def is_present(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # if the package `pipeline` is missing
        return False


def _part(name: str) -> Any:  # noqa: ANN401 a module of the pipeline, without types here
    return importlib.import_module(f"{_PIPELINE}.{name}")


def _java() -> Finding:
    try:
        java = _part("java").find_java()
    except _part("errors").JavaNotFound as error:
        return fail("java", str(error), fix="install Java 17 or 21 and set JAVA_HOME; only the pipeline needs it")
    return ok("java", f"{java.major} at {java.home}, from {java.source}")


def _jars() -> Iterator[Finding]:
    jars = _part("jars")
    known, cache = _part("artifacts").artifacts(), cache_folder()
    for name in jars.CATALOG_JARS:
        artifact = known[name]
        path = jars.jar_path(artifact, cache=cache)
        if not path.is_file():
            yield warn(
                f"jar {name}",
                f"{artifact.coordinates} is not in {cache} yet",
                fix="nothing, if a Maven repository can be reached: it is fetched when Spark starts",
            )
        elif path.stat().st_size != artifact.size:
            yield fail(
                f"jar {name}",
                f"{path} is damaged ({path.stat().st_size} bytes instead of {artifact.size})",
                fix="delete it: it is fetched again",
            )
        else:
            yield ok(f"jar {name}", f"{artifact.version} is in {cache}")
