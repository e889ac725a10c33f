"""A server whose application, sockets and end belong to a test."""

import socket

import uvicorn

from lakewarden.serving.server import Server


class ServedHere(Server):
    """In a thread of the tests: its end is not the process's."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await uvicorn.Server.shutdown(self, sockets)
