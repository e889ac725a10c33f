"""Sets data contracts as the administrator; for the tests of engines."""

from collections.abc import Callable
from typing import Any

from tests.servers.lakewarden_server import DevServer

Manage = Callable[..., Any]


def set_on_namespace(manage: Manage, server: DevServer, namespace: str, **rules: Any) -> None:
    """`protected_columns` is `protected-columns`."""
    warehouse = server.info.warehouse.id
    known = manage("GET", f"/catalog/v1/{warehouse}/namespaces/{namespace}?returnUuid=true")
    manage(
        "PUT",
        f"/management/v1/warehouse/{warehouse}/namespace/{known['namespace-uuid']}/contract",
        {name.replace("_", "-"): value for name, value in rules.items()},
    )
