"""The `spark-sql` shell on whatever Java was found, with catalogs set: `lakewarden spark-sql` calls `run`."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from lakewarden.cache_folder import cache_folder
from pipeline.spark import preflight
from pipeline.spark.catalogs import RestCatalog, local_settings, spark_settings
from pipeline.spark.jars import CATALOG_JARS
from pipeline.spark.jvm import JvmOptions, submit_command, submit_environment
from pipeline.spark.session import prepare, silent
from pipeline.spark.trust import trust_options

SHELL_CLASS = "org.apache.spark.sql.hive.thriftserver.SparkSQLCLIDriver"


def run(
    catalogs: Sequence[RestCatalog],
    *,
    arguments: Sequence[str] = (),
    jar_names: Sequence[str] = CATALOG_JARS,
    progress: Callable[[str], None] = silent,
) -> NoReturn:
    """Becomes the shell: this process is replaced, so the terminal and its signals are the shell's.

    `arguments` are spark-sql's own (`-e SQL`, `-f FILE`, `--hivevar K=V`). Raises before
    that: `SparkSetupFailed`, or what `preflight.check` raises.
    """
    for catalog in catalogs:
        preflight.check(catalog)
    java, jars = prepare(jar_names, progress=progress)
    options = JvmOptions(extra=tuple(trust_options(java, cache=cache_folder())))
    settings = {"spark.master": "local[*]", **local_settings(), **spark_settings(catalogs)}
    submit = ["--class", SHELL_CLASS, "--properties-file", _hand_over(settings), "spark-internal", *arguments]
    command = submit_command(java, options=options, jars=jars, arguments=submit)
    os.execve(command[0], command, submit_environment(local=True))  # noqa: S606  no shell is wanted


def _hand_over(settings: dict[str, str]) -> str:
    """A file of properties without a name, gone with the shell: nobody else reads the secret in it."""
    lines = "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items())
    descriptor, name = tempfile.mkstemp(prefix="lakewarden-")
    Path(name).unlink()
    os.write(descriptor, lines.encode())
    os.set_inheritable(descriptor, True)  # noqa: FBT003  the function has no other form
    return f"/proc/self/fd/{descriptor}"


def _escaped(value: str) -> str:
    """A value of a Java properties file: ASCII, backslashes doubled, leading blanks kept."""
    plain = value.replace("\\", "\\\\").replace("\n", "\\n")
    plain = "\\" + plain if plain.startswith(" ") else plain
    return "".join(c if c.isascii() else "".join(f"\\u{u:04x}" for u in _utf16(c)) for c in plain)


def _utf16(character: str) -> list[int]:
    encoded = character.encode("utf-16-be")
    return [int.from_bytes(encoded[i : i + 2]) for i in range(0, len(encoded), 2)]
