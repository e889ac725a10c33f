"""Iceberg's procedures for Spark, as statements."""

from collections.abc import Callable, Mapping, Sequence

from pipeline.maintenance.names import argument, literal, quoted
from pipeline.maintenance.plan import Step
from pipeline.maintenance.policy import Operation, Policy


def statement(catalog: str, table: Sequence[str], step: Step, policy: Policy, *, dry_run: bool = False) -> str:
    """`dry_run` is understood by the removal of orphan files alone."""
    name, arguments = _ARGUMENTS[step.operation](step, policy)
    if dry_run:
        arguments["dry_run"] = "true"
    listed = ", ".join(f"{key} => {value}" for key, value in {"table": argument(table), **arguments}.items())
    return f"CALL {quoted(catalog)}.system.{name}({listed})"


def _data_files(_step: Step, policy: Policy) -> tuple[str, dict[str, str]]:
    options = {
        "min-input-files": policy.small_files,
        "target-file-size-bytes": policy.target_bytes,
        "max-files-to-rewrite": policy.max_files,
        "delete-file-threshold": policy.delete_files,
        "remove-dangling-deletes": "true",
    }
    return "rewrite_data_files", {"options": _map(options)}


def _position_deletes(_step: Step, policy: Policy) -> tuple[str, dict[str, str]]:
    options = {"min-input-files": policy.delete_files}
    return "rewrite_position_delete_files", {"options": _map(options)}


def _manifests(_step: Step, _policy: Policy) -> tuple[str, dict[str, str]]:
    return "rewrite_manifests", {"use_caching": "false"}


def _snapshots(step: Step, policy: Policy) -> tuple[str, dict[str, str]]:
    return "expire_snapshots", {"older_than": _moment(step), "retain_last": str(policy.min_snapshots)}


def _orphans(step: Step, _policy: Policy) -> tuple[str, dict[str, str]]:
    # By the table's own file access, so that vended credentials suffice: Hadoop's would need keys of its own.
    return "remove_orphan_files", {"older_than": _moment(step), "prefix_listing": "true"}


def _moment(step: Step) -> str:
    return f"TIMESTAMP_MILLIS({step.older_than_ms})"


def _map(options: Mapping[str, object]) -> str:
    return f"map({', '.join(f'{literal(key)}, {literal(str(value))}' for key, value in options.items())})"


_ARGUMENTS: Mapping[Operation, Callable[[Step, Policy], tuple[str, dict[str, str]]]] = {
    Operation.REWRITE_DATA_FILES: _data_files,
    Operation.REWRITE_POSITION_DELETES: _position_deletes,
    Operation.REWRITE_MANIFESTS: _manifests,
    Operation.EXPIRE_SNAPSHOTS: _snapshots,
    Operation.REMOVE_ORPHAN_FILES: _orphans,
}
