"""For the gateway's tests: `lake` and `other` are its warehouses. LAKEWARDEN_TEST_CONTENTS=kafka runs them on Kafka."""

import os

from tests.integration.ingest.lakes import lake, other

if os.environ.get("LAKEWARDEN_TEST_CONTENTS") == "kafka":
    from tests.contracts.ingest.on_kafka import broker, contents  # noqa: F401 fixtures

__all__ = ["lake", "other"]
