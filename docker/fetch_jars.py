"""Fetches Iceberg's jars while the image with Spark is built, so that its pods fetch nothing when they start."""

from dataclasses import replace

from pipeline.spark.artifacts import artifacts
from pipeline.spark.java import BUNDLED, find_java
from pipeline.spark.session import prepare

if __name__ == "__main__":
    # a Java of the distribution has its own list of authorities, without those that this build was given
    java = replace(find_java(), source=BUNDLED)
    prepare(tuple(artifacts()), java=java)
