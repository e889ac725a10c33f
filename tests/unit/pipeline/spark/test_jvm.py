import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.spark.gateway import Handshake
from pipeline.spark.java import Java
from pipeline.spark.jvm import JvmOptions, spark_home, submit_command, submit_environment

JAVA = Java(Path("/jdk"), Path("/jdk/bin/java"), 21, "PATH", has_incubator_vector=False)
SHORT = JvmOptions(heap="512m")


def command(options: JvmOptions) -> list[str]:
    return submit_command(JAVA, options=options, jars=[Path("/jars/iceberg.jar")], arguments=["pyspark-shell"])


def test_the_command_needs_no_module_that_a_java_may_lack() -> None:
    words = command(SHORT)
    assert words[0] == "/jdk/bin/java"
    assert "-Xmx512m" in words
    assert not [word for word in words if word.startswith("--add-modules")]
    assert words[-2:] == ["org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]


def test_jars_are_on_the_class_path_behind_sparks_own() -> None:
    words = command(SHORT)
    assert words[words.index("-cp") + 1] == f"{spark_home()}/jars/*{os.pathsep}/jars/iceberg.jar"


def test_only_a_short_lived_jvm_compiles_lightly() -> None:
    assert "-XX:TieredStopAtLevel=1" in command(SHORT)
    assert "-XX:TieredStopAtLevel=1" not in command(replace(SHORT, short_lived=False))


def test_another_sparks_settings_are_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/opt/other-spark")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")
    environment = submit_environment(local=True)
    assert environment["SPARK_HOME"] == str(spark_home())
    assert "PYSPARK_SUBMIT_ARGS" not in environment
    assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"


def test_a_cluster_may_reach_the_driver() -> None:
    assert "SPARK_LOCAL_IP" not in submit_environment(local=False)


def test_the_connection_file_is_read_as_spark_writes_it() -> None:
    content = struct.pack(">ii", 40123, 6) + "sécre".encode()
    assert Handshake.parse(content) == Handshake(40123, "sécre")
