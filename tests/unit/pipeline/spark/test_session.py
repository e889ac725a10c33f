"""What a session tells Spark, without starting one."""

from pathlib import Path

from pipeline.spark.session import executors_jars

JARS = [Path("/cache/a.jar"), Path("/cache/b.jar")]


def test_executors_in_pods_have_the_jars_in_their_image() -> None:
    assert executors_jars("k8s://https://api", JARS) == {"spark.executor.extraClassPath": "/cache/a.jar:/cache/b.jar"}


def test_other_executors_get_the_jars_from_the_driver() -> None:
    assert executors_jars("spark://host:7077", JARS) == {"spark.jars": "/cache/a.jar,/cache/b.jar"}
