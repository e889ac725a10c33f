"""Ports, with real sockets."""

import os
import socket

import pytest

from standalone import ports
from standalone.errors import EmbeddedError
from standalone.web_server import require_free


def test_free_ports_are_different_and_free() -> None:
    found = ports.free_ports(5)
    assert len(set(found)) == 5
    assert not any(ports.is_taken(port) for port in found)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])  # noqa: S104
def test_listening_port_is_taken_and_its_holder_named(address: str) -> None:
    with socket.socket() as listener:
        listener.bind((address, 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert ports.is_taken(port)
        assert str(ports.find_holder(port)).endswith(f"(pid {os.getpid()})")


def test_port_with_closed_connections_is_free() -> None:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as every server does
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            listener.accept()[0].close()
    assert not ports.is_taken(port)
    assert ports.find_holder(port) is None


def test_require_free_names_port_and_holder() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(EmbeddedError, match=rf"Port {port} is taken by .+ \(pid {os.getpid()}\): stop it, or"):
            require_free(port)
