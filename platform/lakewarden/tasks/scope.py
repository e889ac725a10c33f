"""Where a task belongs (`Scope`) and what it works on (`Entity`)."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Scope:
    """The tasks of a warehouse, or (`warehouse_id` None) those of the project itself."""

    project_id: str
    warehouse_id: UUID | None = None

    @property
    def condition(self) -> str:
        """SQL for a table `t` with the parameters `project_id` and `warehouse_id`, in the form
        that matches the index.
        """
        inside = "t.warehouse_id is null" if self.warehouse_id is None else "t.warehouse_id = %(warehouse_id)s"
        return f"t.project_id = %(project_id)s and {inside}"

    @property
    def parameters(self) -> dict[str, object]:
        return {"project_id": self.project_id, "warehouse_id": self.warehouse_id}


@dataclass(frozen=True, slots=True)
class Entity:
    """The object that a task works on; `name` is its full path when the task was queued, for display."""

    type: str
    id: str
    name: tuple[str, ...] = ()
