"""The command line and environment of every Spark JVM that we start: the gateway's and the shell's."""

import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.spark.errors import SparkSetupFailed
from pipeline.spark.java import Java

LOGGING = Path(__file__).with_name("conf") / "log4j2.properties"

# What Spark, Arrow and Kryo reach into. Spark's own launcher opens the same, but also asks for the module
# jdk.incubator.vector, which a Java from a wheel lacks: it only speeds up Spark's linear algebra.
_OPENED = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
_PROPERTIES = ("jdk.reflect.useDirectMethodHandle=false", "io.netty.tryReflectionSetAccessible=true")

# Light compiling and one collector thread halve the CPU time of a short job; a long one wants neither.
_SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True, slots=True)
class JvmOptions:
    """How a JVM is run. `heap` as Java writes it (`1g`); `log_level` of log4j2; `extra`: more JVM options."""

    heap: str = "1g"
    short_lived: bool = True
    log_level: str = "error"
    extra: tuple[str, ...] = ()


def spark_home() -> Path:
    """The folder of pyspark, without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkSetupFailed("pyspark is not installed: install lakewarden with its `spark` extra.")
    return Path(spec.origin).parent


def submit_command(java: Java, *, options: JvmOptions, jars: Sequence[Path], arguments: Sequence[str]) -> list[str]:
    """The command that runs Spark's own submit class in one JVM, with `jars` on its class path."""
    command = [str(java.executable), f"-Xmx{options.heap}", "-XX:+IgnoreUnrecognizedVMOptions"]
    command += _SHORT_LIVED if options.short_lived else ()
    command += [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    command += ["--enable-native-access=ALL-UNNAMED"]
    command += [f"-D{setting}" for setting in _PROPERTIES]
    command += [f"-Dlog4j2.configurationFile={LOGGING}", f"-Dlakewarden.log.level={options.log_level}"]
    class_path = os.pathsep.join([str(spark_home() / "jars" / "*"), *map(str, jars)])
    return [*command, *options.extra, "-cp", class_path, "org.apache.spark.deploy.SparkSubmit", *arguments]


def submit_environment(*, local: bool) -> dict[str, str]:
    """The environment for the JVM: ours, less another Spark's. `local`: listen on 127.0.0.1 only."""
    home = str(spark_home())
    foreign = ("SPARK_CONF_DIR", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS")
    variables = {name: value for name, value in os.environ.items() if name not in foreign}
    variables |= {"SPARK_HOME": home, "SPARK_CONF_DIR": str(LOGGING.parent), "SPARK_CONNECT_MODE": "0"}
    variables.setdefault("PYSPARK_PYTHON", sys.executable)
    if local:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return variables
