"""What the root application calls: whether a path is the gateway's, its requests, its sockets, and its start."""

from ingest.api.requests import answer
from ingest.api.routes import Asked, asked, label
from ingest.api.sockets import open_socket
from ingest.services.storing import recover

__all__ = ["Asked", "answer", "asked", "label", "open_socket", "recover"]
