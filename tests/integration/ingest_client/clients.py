"""What tests of the client are given: a client on the gateway of the test, with any of its options changed."""

from collections.abc import Callable

from ingest.client import IngestClient

Connected = Callable[..., IngestClient]
