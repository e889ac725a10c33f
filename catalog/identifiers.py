"""Identifiers as the API writes them: a path of names in a warehouse, and a name in a namespace."""

from dataclasses import dataclass

SEPARATOR = "\x1f"
"""Between the names of a path in a URL (`%1F`), also what the config answer advertises."""


@dataclass(frozen=True, slots=True)
class NamespaceIdentifier:
    """`warehouse` is the path's `{prefix}`; `path` has one name or more, outermost first."""

    warehouse: str
    path: tuple[str, ...]

    @classmethod
    def parse(cls, prefix: str, namespace: str) -> "NamespaceIdentifier":
        return cls(prefix, tuple(namespace.split(SEPARATOR)))

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class TabularIdentifier:
    """A table's or view's name in a namespace."""

    namespace: NamespaceIdentifier
    name: str

    @classmethod
    def parse(cls, prefix: str, namespace: str, name: str) -> "TabularIdentifier":
        return cls(NamespaceIdentifier.parse(prefix, namespace), name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"
