"""The type of the fixture `visitor`."""

from collections.abc import Callable

from tests.servers.asgi_client import AsgiClient

Visitor = Callable[[str], AsgiClient]
