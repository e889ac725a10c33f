"""Trouble on the way to a Spark session; the demo, the pipeline and `lakewarden spark-sql` show the message.

SparkSetupFailed
├── JavaNotFound        no Java of a version that Spark runs on
├── JarUnavailable      a jar is not in the cache and cannot be fetched, or is not the one that was asked for
└── GatewayFailed       the driver's JVM did not start, or ended before it was ready
"""

from lakewarden.errors import LakewardenError


class SparkSetupFailed(LakewardenError):
    """Base: nothing was read from or written to a catalog yet."""


class JavaNotFound(SparkSetupFailed):
    pass


class JarUnavailable(SparkSetupFailed):
    pass


class GatewayFailed(SparkSetupFailed):
    pass
