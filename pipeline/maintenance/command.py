"""`lakewarden maintenance plan|run|history`: one Spark session on one warehouse, and lines for a person."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakewarden.config.maintenance import MaintenanceConfig
from lakewarden.errors import BadRequest
from pipeline.maintenance.ledger import Done, Ledger
from pipeline.maintenance.plan import Step
from pipeline.maintenance.policy import Operation, of_warehouse
from pipeline.maintenance.run import Planned, Warehouse
from pipeline.maintenance.survey import Count
from pipeline.spark import preflight
from pipeline.spark.catalogs import RestCatalog
from pipeline.spark.jars import CATALOG_JARS
from pipeline.spark.session import session

CATALOG_NAME = "lake"
_NEEDED = [f"LAKEWARDEN__MAINTENANCE__{name.upper()}" for name in MaintenanceConfig().unset]


@dataclass(frozen=True, slots=True)
class Options:
    """`tables` as the command line has them, `namespace.table`; none: all of the warehouse."""

    dsn: str = field(repr=False)
    config: MaintenanceConfig
    warehouse: str | None
    ready_file: Path
    master: str = "local[*]"
    tables: Sequence[str] = ()

    @property
    def wanted(self) -> list[tuple[str, ...]]:
        found = [tuple(each.split(".")) for each in self.tables]
        for each in found:
            if len(each) < 2 or not all(each):  # noqa: PLR2004
                raise BadRequest(f"{'.'.join(each)!r} is not a valid table: it must be namespace.table.")
        return found

    def catalog(self, warehouse: str) -> RestCatalog:
        """The settings of the configuration, else those of the ready file. Raises `BadRequest`."""
        config = self.config
        missing = [f"LAKEWARDEN__MAINTENANCE__{name.upper()}" for name in config.unset]
        if len(missing) == len(_NEEDED):
            return self._of_ready_file(warehouse)
        if missing:
            raise BadRequest(f"{', '.join(missing)} must be set, too: maintenance logs in to the catalog as an engine.")
        return _catalog(
            warehouse,
            uri=config.catalog_uri or "",
            token_endpoint=config.oauth2_server_uri or "",
            credential=config.credential,
            scope=config.scope,
        )

    def _of_ready_file(self, warehouse: str) -> RestCatalog:
        try:
            ready: dict[str, Any] = json.loads(self.ready_file.read_bytes())
            engine = ready["engine"]
            return _catalog(
                warehouse,
                uri=ready["catalog_uri"],
                token_endpoint=ready["token_endpoint"],
                credential=f"{engine['client_id']}:{engine['client_secret']}",
                scope=engine["scope"],
            )
        except (OSError, ValueError, KeyError, TypeError):
            raise BadRequest(
                f"There is nothing to log in with: set {', '.join(_NEEDED)}, or start `lakewarden dev`, which writes "
                f"{self.ready_file}, or name its file with --ready-file."
            ) from None


def _catalog(warehouse: str, *, uri: str, token_endpoint: str, credential: str, scope: str) -> RestCatalog:
    return RestCatalog(
        name=CATALOG_NAME,
        uri=uri,
        warehouse=warehouse,
        credential=credential,
        oauth2_server_uri=token_endpoint,
        scope=scope,
        extra={"header.X-Iceberg-Access-Delegation": "vended-credentials", "cache-enabled": "false"},
    )


@contextmanager
def _opened(options: Options) -> Iterator[Warehouse]:
    with closing(Ledger(options.dsn, history_days=options.config.history_days)) as ledger:
        identifier, name, is_in_bucket = ledger.warehouse(options.warehouse)
        policy, catalog = of_warehouse(options.config, name), options.catalog(name)
        preflight.check(catalog)
        jars = (*CATALOG_JARS, "iceberg-aws-bundle") if is_in_bucket else CATALOG_JARS
        with session([catalog], app_name="lakewarden-maintenance", master=options.master, jar_names=jars) as spark:
            yield Warehouse(spark, CATALOG_NAME, identifier, ledger, policy)


def plan(options: Options, say: Callable[[str], None]) -> int:
    """Returns the number of tables that could not be looked at."""
    problems = 0
    with _opened(options) as warehouse:
        for each in warehouse.plan(options.wanted, ignores_enabled=bool(options.tables)):
            problems += bool(each.problem)
            for line in planned_lines(each):
                say(line)
    return problems


def run(options: Options, say: Callable[[str], None], *, only: Sequence[Operation], now: bool) -> int:
    """Returns the number of operations that failed."""
    failed = count = 0
    with _opened(options) as warehouse:
        for done in warehouse.run(options.wanted, only=only, now=now):
            count += 1
            failed += done.state == "failed"
            say(done_line(done))
    say(f"{count} operations, {failed} failed" if count else "Nothing was due, or worth doing")
    return failed


def history(options: Options, say: Callable[[str], None], *, limit: int) -> None:
    with closing(Ledger(options.dsn)) as ledger:
        identifier, _, _ = ledger.warehouse(options.warehouse)
        tables: list[str | None] = [".".join(each) for each in options.wanted] or [None]
        rows = [row for table in tables for row in ledger.history(identifier, table, limit)]
    for row in rows:
        change = _change(
            (row["files_before"], row["files_after"]), (row["bytes_before"], row["bytes_after"]), row["error"]
        )
        say(f"{row['began']}  {row['table']}  {row['operation']}  {change}  {row['seconds']:.1f} s")
    if not rows:
        say("Nothing was done yet")


def planned_lines(planned: Planned) -> Iterator[str]:
    name = ".".join(planned.table)
    if planned.problem:
        yield f"{name}: {planned.problem}"
        return
    live = planned.live or Count()
    yield f"{name}: {live.files:,} files, {live.bytes / 1e6:,.1f} MB{'' if planned.steps else '; nothing to do'}"
    for step in planned.steps:
        yield f"  {step.operation}: {step.reason}{_gain(step)}"


def _gain(step: Step) -> str:
    if step.gain is None:
        return ""
    if step.operation is Operation.EXPIRE_SNAPSHOTS:
        return f"; removes {step.gain.files:,} files, {step.gain.bytes / 1e6:,.1f} MB, at most"
    return f"; {step.gain.files:,} files fewer"


def done_line(done: Done) -> str:
    change = _change((done.files_before, done.files_after), (done.bytes_before, done.bytes_after), done.error)
    return f"{done.table}: {done.operation}: {change}, {done.ended - done.began:.1f} s"


def _change(files: tuple[int | None, int | None], size: tuple[int | None, int | None], error: str) -> str:
    if error:
        return f"failed: {error}"
    before, after = size
    sizes = "" if before is None or after is None else f", {before / 1e6:,.1f} -> {after / 1e6:,.1f} MB"
    return f"{files[0] or 0:,} -> {files[1] or 0:,} files{sizes}"
