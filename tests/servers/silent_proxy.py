"""A TCP proxy that can stop forwarding: it accepts data and passes nothing on, like a network that drops packets."""

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from standalone.ports import HOST

_CHUNK = 65536


class SilentProxy:
    """`port` leads to `target`; while `is_silent` nothing passes in either direction, and no connection is closed."""

    def __init__(self, target: int, port: int) -> None:
        self._target = target
        self._listener = socket.create_server((HOST, port))
        self._listener.settimeout(0.1)
        self.port = int(self._listener.getsockname()[1])
        self._passing = threading.Event()
        self._passing.set()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def fall_silent(self) -> None:
        self._passing.clear()

    def speak(self) -> None:
        self._passing.set()

    def close(self) -> None:
        self._over.set()
        self._passing.set()
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _accept(self) -> None:
        while not self._over.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            client.settimeout(None)
            thread = threading.Thread(target=self._pass, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _pass(self, client: socket.socket) -> None:
        with client, socket.create_connection((HOST, self._target)) as server, selectors.DefaultSelector() as both:
            both.register(client, selectors.EVENT_READ, server)
            both.register(server, selectors.EVENT_READ, client)
            while not self._over.is_set():
                for key, _ in both.select(0.1):
                    assert isinstance(key.fileobj, socket.socket)
                    self._passing.wait()
                    try:
                        content = key.fileobj.recv(_CHUNK)
                        if not content:
                            return
                        key.data.sendall(content)
                    except OSError:
                        return


@contextmanager
def silent_proxy(target: int, port: int = 0) -> Iterator[SilentProxy]:
    """It listens on `port`, or on a free one."""
    proxy = SilentProxy(target, port)
    try:
        yield proxy
    finally:
        proxy.close()
