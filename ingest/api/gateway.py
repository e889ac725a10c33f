"""What the root application calls: whether a path is the gateway's, its requests and its sockets."""

from ingest.api.requests import answer
from ingest.api.routes import Asked, asked
from ingest.api.sockets import open_socket

__all__ = ["Asked", "answer", "asked", "open_socket"]
