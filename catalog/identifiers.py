"""Identifiers in the API: the path of a namespace in a warehouse, and a name in a namespace."""

from dataclasses import dataclass

SEPARATOR = "\x1f"
"""Separates the names of a path in a URL (`%1F`); clients learn it from the configuration."""


@dataclass(frozen=True, slots=True)
class NamespaceIdentifier:
    """`warehouse` is the `{prefix}` in the URL; `path` has at least one name, outermost first."""

    warehouse: str
    path: tuple[str, ...]

    @classmethod
    def parse(cls, prefix: str, namespace: str) -> "NamespaceIdentifier":
        return cls(prefix, tuple(namespace.split(SEPARATOR)))

    def __str__(self) -> str:
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class TabularIdentifier:
    """The name of a table or view in a namespace."""

    namespace: NamespaceIdentifier
    name: str

    @classmethod
    def parse(cls, prefix: str, namespace: str, name: str) -> "TabularIdentifier":
        return cls(NamespaceIdentifier.parse(prefix, namespace), name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"
