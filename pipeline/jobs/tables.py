"""The tables of a catalog as the pipeline knows them: loaded, made, altered, and kept from flush to flush."""

import logging
from collections.abc import Callable, Mapping
from uuid import UUID

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from pipeline.jobs import policies
from pipeline.jobs.lake import Identifier, Lake
from pipeline.jobs.metadata import KIND, Metadata
from pipeline.jobs.parts import Part
from pipeline.jobs.policies import Kind, Mode
from pipeline.transforms.columns import CDC_COLUMNS, METADATA_COLUMN, METADATA_TYPE, Change, Column, needed
from pipeline.transforms.rows import DELETED_COLUMNS, REJECTED_COLUMNS

ATTEMPTS = 3
KEPT = 2000
"""Tables whose metadata are kept."""
DAILY = "days(_cdc_timestamp)"
_OWN = tuple(Column(name, kind, required=True) for name, kind in CDC_COLUMNS.items())
_COLUMNS = {
    Kind.CHANGELOG: _OWN,
    Kind.MIRROR: tuple(column for column in _OWN if column.name != "_cdc_operation"),
    Kind.REJECTED: REJECTED_COLUMNS,
    Kind.DELETED: DELETED_COLUMNS,
}
_METADATA = Column(METADATA_COLUMN, METADATA_TYPE)

log = logging.getLogger("lakewarden.pipeline")


class Tables:
    """For one catalog and log. Any failure lets it look at all tables again."""

    def __init__(self, lake: Lake, *, log_id: UUID, default: Mode) -> None:
        self._lake = lake
        self._log_id = log_id
        self._default = default
        self._known: dict[Identifier, Metadata] = {}
        self._modes: dict[Identifier, Mode] = {}
        self._namespaces: dict[Identifier, Mapping[str, str]] = {}

    def begin(self) -> None:
        """A flush begins. Its tables are mostly of a few namespaces, whose properties are read once for all of them."""
        self._namespaces.clear()
        if len(self._known) > KEPT:
            self.forget()

    def forget(self) -> None:
        """Look at all tables again: another process, or we before a failure, may have changed them."""
        self._known.clear()
        self._modes.clear()

    def forget_one(self, target: Identifier) -> None:
        """Look at this table again."""
        self._known.pop(target, None)

    def keep(self, target: Identifier, metadata: Metadata) -> None:
        """What was learned of a table elsewhere."""
        self._known[target] = metadata

    def again(self, attempt: Callable[[], None]) -> None:
        """What other engines did meanwhile is seen in the next attempt; an outage is left to who called us."""
        for left in reversed(range(ATTEMPTS)):
            try:
                return attempt()
            except (PySparkException, Py4JError) as error:
                self.forget()
                if not left:
                    raise
                log.debug("Attempted again: %s", error)
        return None

    def largest_mirror(self) -> int:
        """Rows of the largest mirror among the tables whose metadata are kept."""
        kept = [each for each in list(self._known.values()) if each.properties.get(KIND) == Kind.MIRROR]
        return max((each.rows(self._log_id) for each in kept), default=0)

    def metadata(self, target: Identifier) -> Metadata | None:
        """None if there is no such table."""
        known = self._known.get(target)
        if known is None and (known := self._lake.metadata(target)) is not None:
            self._known[target] = known
        return known

    def loaded(self, target: Identifier) -> Metadata:
        """As it is now. Raises if there is no such table."""
        metadata = self._lake.metadata(target)
        if metadata is None:
            raise PySparkException(f"The table {'.'.join(target)} was dropped while the pipeline prepared it")
        self._known[target] = metadata
        return metadata

    def mode(self, table: Identifier) -> Mode:
        """What becomes of the table's changes."""
        if (known := self._modes.get(table)) is None:
            metadata = self.metadata(table)
            sources = [metadata.properties] if metadata else []
            sources += [self._of_namespace(table[:length]) for length in range(len(table) - 1, 0, -1)]
            known = self._modes[table] = policies.mode(sources, default=self._default)
        return known

    def ready(self, target: Identifier, kind: Kind, part: Part) -> tuple[Metadata, Kind]:
        """The table's metadata, once it has all columns that the part needs; and what its rows are.

        A table stays what it was made as: rows of the other kind would make it useless as either.
        """
        metadata = self.metadata(target)
        if metadata is not None:
            kind = Kind(metadata.properties.get(KIND, kind))
        else:
            partitions = DAILY if kind is Kind.CHANGELOG else ""
            made = [Column(change.path[0], change.type) for change in needed((), part.fields)]
            extra = [_METADATA] if part.has_metadata and kind is Kind.CHANGELOG else []
            self._lake.create(target, [*_COLUMNS[kind], *extra, *made], kind=kind, partitions=partitions)
            metadata = self.loaded(target)
        if missing := _missing(metadata.columns, kind, part):
            self._lake.change(target, missing)
            metadata = self.loaded(target)
        return metadata, kind

    def _of_namespace(self, namespace: Identifier) -> Mapping[str, str]:
        if (known := self._namespaces.get(namespace)) is None:
            known = self._namespaces[namespace] = self._lake.properties_of_namespace(namespace)
        return known


def _missing(columns: tuple[Column, ...], kind: Kind, part: Part) -> list[Change]:
    """Our own columns are optional in a table that others made: its rows have no values for them."""
    known = {column.name for column in columns}
    own = [*_COLUMNS[kind], *([_METADATA] if part.has_metadata and kind is Kind.CHANGELOG else [])]
    return [Change((each.name,), each.type) for each in own if each.name not in known] + needed(columns, part.fields)
