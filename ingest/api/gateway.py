"""What the root application calls: whether a path is the gateway's, requests, sockets, its start and its end."""

from ingest.api.requests import answer
from ingest.api.routes import Asked, asked, label
from ingest.api.sockets import open_socket
from ingest.services.kafka.placing import close
from ingest.services.storing import recover

__all__ = ["Asked", "answer", "asked", "close", "label", "open_socket", "recover"]
