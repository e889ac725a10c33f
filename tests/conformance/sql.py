"""An engine as a test speaks to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Sql:
    """An engine as a test speaks to it: `{ns}` of a statement is the test's namespace, `{name}` a value given by name."""

    execute: Callable[[str], list[Row]]
    namespace: str

    def __call__(self, statement: str, **values: object) -> list[Row]:
        for name, value in {**values, "ns": f"lake.{self.namespace}", "namespace": self.namespace}.items():
            statement = statement.replace("{" + name + "}", str(value))
        return self.execute(statement)

    def mapping(self, statement: str) -> dict[str, Any]:
        """The first column of each row to the second."""
        return {row[0]: row[1] for row in self(statement)}
