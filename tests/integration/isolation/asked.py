"""Requests of the matrix, with names in braces that are filled in for one project or the other."""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.integration.isolation.cases import PARTS, Case
from tests.servers.asgi_client import Answer, AsgiClient

_NAMED = re.compile(r"\{(\w+)\}")
OF_B = "own_"
Values = dict[str, str]


@dataclass(frozen=True)
class Asked:
    """A request with names still in braces."""

    method: str
    path: str
    body: Any

    @classmethod
    def of(cls, route: str, case: Case) -> "Asked":
        method, _, template = route.partition(" ")
        path = _NAMED.sub(lambda found: f"{{{PARTS.get(found[1], found[1])}}}", case.path or template)
        return cls(method, path + (f"?{case.query}" if case.query else ""), case.body)

    @property
    def names(self) -> set[str]:
        """What of the first project it names."""
        found = set(_NAMED.findall(self.path + json.dumps(self.body)))
        return {name for name in found if not name.startswith(OF_B)}

    def ask(self, caller: AsgiClient, values: Values, project: str | None) -> Answer:
        def filled(text: str) -> str:
            return _NAMED.sub(lambda found: values.get(found[1], found[0]), text)

        # ids and names of the tests need no escape in JSON
        body = None if self.body is None else json.loads(filled(json.dumps(self.body)))
        headers = {} if project is None else {"x-project-id": project}
        return caller.call(self.method, filled(self.path), json=body, headers=headers)
