"""Where a task belongs, and what it is about: what every other module of tasks speaks in."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Scope:
    """A warehouse's tasks, or (`warehouse_id` None) those of the project itself."""

    project_id: str
    warehouse_id: UUID | None = None

    @property
    def condition(self) -> str:
        """SQL on a table `t` with the parameters `project_id` and `warehouse_id`, in the form that its index has."""
        inside = "t.warehouse_id is null" if self.warehouse_id is None else "t.warehouse_id = %(warehouse_id)s"
        return f"t.project_id = %(project_id)s and {inside}"

    @property
    def parameters(self) -> dict[str, object]:
        return {"project_id": self.project_id, "warehouse_id": self.warehouse_id}


@dataclass(frozen=True, slots=True)
class Entity:
    """The object that a task works on; `name` is its full path when the task was made, for people."""

    type: str
    id: str
    name: tuple[str, ...] = ()
