"""The namespace `default` is there, as in the gateway's own tests."""

from tests.contracts.ingest.on_kafka import broker, contents
from tests.integration.ingest.lakes import lake

__all__ = ["broker", "contents", "lake"]
