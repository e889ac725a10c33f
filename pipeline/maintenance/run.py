"""Maintenance of the tables of one warehouse: look, decide, lock, do, measure, record."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.errors import LakewardenError
from pipeline.maintenance import procedures
from pipeline.maintenance.ledger import Done, Ledger
from pipeline.maintenance.names import quoted
from pipeline.maintenance.plan import Step, plan
from pipeline.maintenance.policy import Operation, Policy, resolve
from pipeline.maintenance.survey import DATA, POSITION_DELETES, Count, Survey, survey
from pipeline.spark.failures import in_one_sentence

log = logging.getLogger("lakewarden.maintenance")

_PASSES = 50
"""A bound for a table that never becomes smaller: then its policy contradicts what the procedure does."""

_PAUSE_S = 600.0
"""Until a table is looked at again that failed, whose policy is not enabled, or to which a flush was writing."""

Identifier = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """What would be done to a table; `problem` says why nothing can be said."""

    table: Identifier
    steps: Sequence[Step] = ()
    live: Count | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Warehouse:
    """`catalog` is its name in SQL, `policy` the properties that the configuration gives it.

    `wait_s`: how long an operation waits for the end of a flush of the same table.
    `rests`: when a table is worth a look again, in seconds since 1970; so a process that looks often asks for little.
    """

    spark: SparkSession
    catalog: str
    id: UUID
    ledger: Ledger
    policy: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.time
    wait_s: float = 0.0
    rests: dict[Identifier, float] = field(default_factory=dict)

    def tables(self, wanted: Sequence[Identifier] = ()) -> Iterator[Identifier]:
        """All tables, or those that are wanted."""
        yield from wanted or self._below(())

    def plan(self, wanted: Sequence[Identifier] = (), *, ignores_enabled: bool = False) -> Iterator[Planned]:
        """A dry run over each table whose policy is enabled; nothing is changed, and no schedule is asked."""
        for table in self.tables(wanted):
            try:
                policy, properties = self._policy(table)
                if policy.is_enabled or ignores_enabled:
                    state = self._survey(table, policy, properties)
                    yield Planned(table, plan(state, policy, now_ms=self._now_ms()), state.live)
            except (LakewardenError, PySparkException, Py4JError) as error:
                yield Planned(table, problem=explained(error).message)

    def run(
        self,
        wanted: Sequence[Identifier] = (),
        *,
        only: Sequence[Operation] = (),
        now: bool = False,
        goes_on: Callable[[], bool] = lambda: True,
    ) -> Iterator[Done]:
        """Does what is worth doing and due. `now`: also what is not due, and for the wanted tables even if disabled."""
        for table in self.tables(wanted):
            if not goes_on():
                return
            if not now and self.clock() < self.rests.get(table, 0.0):
                continue
            self.rests[table] = self.clock() + _PAUSE_S
            try:
                policy, properties = self._policy(table)
                if policy.is_enabled or (now and wanted):
                    self.rests[table] = self.clock() + min(map(policy.interval_s, Operation))
                    yield from self._maintain(table, policy, properties, only=only, now=now)
            except (LakewardenError, PySparkException, Py4JError) as error:
                log.warning("%s: %s", ".".join(table), explained(error).message)

    def _maintain(
        self,
        table: Identifier,
        policy: Policy,
        properties: Mapping[str, str],
        *,
        only: Sequence[Operation],
        now: bool,
    ) -> Iterator[Done]:
        if not now and not policy.allows(self.clock()):
            self.rests[table] = self.clock() + _PAUSE_S
            return
        last = {} if now else self.ledger.last(self.id, _shown(table))
        due = [
            each
            for each in policy.operations
            if each in (only or policy.operations) and self.clock() - last.get(each, 0.0) >= policy.interval_s(each)
        ]
        if not due:
            return
        # Each survey is some jobs of Spark's, beside the flushes. What flushes add meanwhile is for the next time.
        state = self._survey(table, policy, properties)
        for operation in due:
            step = next((s for s in plan(state, policy, now_ms=self._now_ms()) if s.operation == operation), None)
            if step is None:
                continue
            done, state = self._locked_step(table, step, policy, properties, state)
            if done is not None:
                self.ledger.record(done)
                yield done

    def _locked_step(
        self, table: Identifier, step: Step, policy: Policy, properties: Mapping[str, str], before: Survey
    ) -> tuple[Done | None, Survey]:
        """What was done, and the state after it. None if a flush writes to the table now: it is for the next time."""
        began, error, removed = self.clock(), "", 0
        after = before
        try:
            for _ in range(_PASSES):
                with self.ledger.locked(self.id, table, wait_s=self.wait_s) as is_locked:
                    if not is_locked:
                        self.rests[table] = self.clock() + _PAUSE_S
                        log.info("%s: a flush writes to it; %s waits", _shown(table), step.operation)
                        if after is before:
                            return None, before
                        break
                    removed += self._call(table, step, policy)
                if step.operation is Operation.REMOVE_ORPHAN_FILES:
                    break  # of what they are, the state says nothing
                left, after = after, self._survey(table, policy, properties)
                if step.operation is not Operation.REWRITE_DATA_FILES or not _goes_on(left, after, policy):
                    break
        except (LakewardenError, PySparkException, Py4JError) as failure:
            error = explained(failure).message
        counted = _counts(step.operation, before, after, removed)
        done = Done(
            warehouse=self.id,
            table=_shown(table),
            operation=step.operation,
            state="failed" if error else "done",
            began=began,
            ended=self.clock(),
            reason=step.reason,
            files_before=counted[0].files,
            files_after=counted[1].files,
            bytes_before=counted[0].bytes if step.operation is not Operation.REMOVE_ORPHAN_FILES else None,
            bytes_after=counted[1].bytes if step.operation is not Operation.REMOVE_ORPHAN_FILES else None,
            error=error,
        )
        return done, after

    def _call(self, table: Identifier, step: Step, policy: Policy) -> int:
        """Returns the number of rows that the procedure answers with: one for each file that it removed, or one."""
        statement = procedures.statement(self.catalog, table, step, policy)
        log.debug("%s", statement)
        return len(self.spark.sql(statement).collect())

    def _policy(self, table: Identifier) -> tuple[Policy, Mapping[str, str]]:
        """The table's policy and properties. Raises `InvalidArgument`."""
        shown = self.spark.sql(f"SHOW TBLPROPERTIES {quoted(self.catalog, *table)}").collect()
        properties = {row.key: row.value for row in shown}
        outer = [self._namespace_properties(table[:length]) for length in range(len(table) - 1, 0, -1)]
        return resolve(properties, *outer, self.policy), properties

    def _below(self, namespace: Identifier) -> Iterator[Identifier]:
        catalog, levels = self._java_catalog(), self._strings(namespace)
        if namespace:
            yield from ((*namespace, str(each.name())) for each in catalog.listTables(levels))
        for below in catalog.listNamespaces(levels):
            yield from self._below(tuple(below))

    def _namespace_properties(self, namespace: Identifier) -> Mapping[str, str]:
        return dict(self._java_catalog().loadNamespaceMetadata(self._strings(namespace)))

    def _java_catalog(self) -> Any:  # noqa: ANN401  py4j
        """Spark's SQL shows namespaces as one quoted text; the catalog gives their levels."""
        # catalogs are looked up with the settings of the thread's session, which only SQL statements choose
        jvm: Any = self.spark._jvm  # noqa: SLF001  no public way
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self.spark._jsparkSession)  # noqa: SLF001
        return self.spark._jsparkSession.sessionState().catalogManager().catalog(self.catalog)  # noqa: SLF001  no public way

    def _survey(self, table: Identifier, policy: Policy, properties: Mapping[str, str]) -> Survey:
        # another engine may have written: the session's copy of the table is then an old one
        self.spark.sql(f"REFRESH TABLE {quoted(self.catalog, *table)}")
        return survey(self.spark, self.catalog, table, properties, small=policy.small_bytes)

    def _strings(self, values: Sequence[str]) -> Any:  # noqa: ANN401  py4j
        gateway: Any = self.spark.sparkContext._gateway  # noqa: SLF001  no public way
        array = gateway.new_array(gateway.jvm.String, len(values))
        for number, value in enumerate(values):
            array[number] = value
        return array

    def _now_ms(self) -> int:
        return int(self.clock() * 1000)


def _goes_on(before: Survey, after: Survey, policy: Policy) -> bool:
    """Whether another pass finds more to rewrite: the passes are bounded, so that a flush in between need not wait."""
    more = any(each.content == DATA and each.small.files >= policy.small_files for each in after.groups)
    return more and after.count(DATA).files < before.count(DATA).files


def _counts(operation: Operation, before: Survey, after: Survey, removed: int) -> tuple[Count, Count]:
    """What the operation is about, before and after it."""
    match operation:
        case Operation.REWRITE_DATA_FILES:
            return before.count(DATA), after.count(DATA)
        case Operation.REWRITE_POSITION_DELETES:
            return before.count(POSITION_DELETES), after.count(POSITION_DELETES)
        case Operation.REWRITE_MANIFESTS:
            return before.manifests, after.manifests
        case Operation.EXPIRE_SNAPSHOTS:
            return before.stored, after.stored
        case Operation.REMOVE_ORPHAN_FILES:
            return Count(removed), Count()


def _shown(table: Sequence[str]) -> str:
    return ".".join(table)


def explained(error: Exception) -> LakewardenError:
    """What an engine raised, in one sentence."""
    try:
        with in_one_sentence():
            raise error
    except LakewardenError as translated:
        return translated
