"""Runs all checks, in the order in which problems should be corrected; for command.py."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from lakewarden import config
from lakewarden.config import Config, ConfigError
from lakewarden.doctor import database, identity, ingest_contents, left_alone, local_storage, openfga, server, spark
from lakewarden.doctor.findings import Finding, fail, ok

Check = Callable[[Config], Iterable[Finding]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("server", server.examine),
    ("storage", local_storage.examine),
    ("stores", left_alone.examine),
    ("identity", identity.examine),
    ("database", database.examine),
    ("OpenFGA", openfga.examine),
    ("Kafka of ingest", ingest_contents.examine),
    ("spark", spark.examine),
)


def run(environment: Mapping[str, str]) -> list[Finding]:
    """Check the installation that the variables `LAKEWARDEN__*` in `environment` describe. Never raises.

    If the configuration is invalid, the findings are only its errors, because every other check needs it.
    """
    try:
        settings = config.read(environment)
    except ConfigError as error:
        return [_misconfigured(problem) for problem in str(error).splitlines()]
    return [*of_settings(settings), *_guarded("stores", left_alone.examine_server, settings)]


def of_settings(settings: Config) -> list[Finding]:
    """Check the installation that valid settings describe. Never raises."""
    found = [ok("configuration", "is complete and without contradictions")]
    for name, check in CHECKS:
        found.extend(_guarded(name, check, settings))
    return found


def _misconfigured(problem: str) -> Finding:
    return fail("configuration", problem, fix="correct this variable, or unset it to use the default")


def _guarded(name: str, check: Check, settings: Config) -> Iterator[Finding]:
    try:
        yield from check(settings)
    except Exception as error:  # noqa: BLE001 a defect in one check must not hide the others
        # only the type: the message may contain anything, including a password
        yield fail(name, f"could not be checked ({type(error).__name__})", fix="report this as a defect of Lakewarden")
