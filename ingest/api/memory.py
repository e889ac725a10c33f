"""Memory of this process for batches that are being stored."""

from typing import Final

from lakewarden import config
from lakewarden.fair_shares import Shares

IN_FLIGHT: Final = Shares(config.current().ingest.in_flight_bytes, percent=config.current().server.caller_share_percent)
