"""A client of the change-data gateway, and the program behind `lakewarden ingest send`. It imports no Django.

with IngestClient("https://lake.example/lakehouse", source="orders-1", token=ClientCredentials(...)) as client:
    client.send([ChangeEvent(sequence=1, timestamp=..., operation="INSERT", table="orders", row_id="7", after={...})])
"""

from ingest.client.client import IngestClient
from ingest.client.events import ChangeEvent
from ingest.client.messages import Ack, FlushResult
from ingest.client.tokens import ClientCredentials, FixedToken

__all__ = ["Ack", "ChangeEvent", "ClientCredentials", "FixedToken", "FlushResult", "IngestClient"]
