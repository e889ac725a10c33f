"""Tries a storage with its credential, within a time: the last checks of `warehouse_validation`."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from typing import Final, TypeVar

from lakewarden import backends, config
from lakewarden.errors import BadRequest, Unavailable
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.interface import Storage, StorageError, StorageUnavailable
from lakewarden.storage.probe import EngineProbe, Probe
from lakewarden.storage.profile import StorageProfile
from tenants.services.validation_report import Check, CheckName, CheckStatus, Report

R = TypeVar("R")

CHECKS: Final = (
    CheckName.STORAGE_CLIENT_INITIALIZED,
    CheckName.READ_WRITE,
    CheckName.VENDED_CREDENTIALS_ISSUED,
    CheckName.VENDED_CREDENTIALS_READ_WRITE,
    CheckName.VENDED_CREDENTIALS_SCOPE_ENFORCED,
    CheckName.CLEANUP,
)
_VENDED: Final = CHECKS[2:5]


def run(report: Report, profile: StorageProfile, credential: StorageCredential | None, *, keep_folders: bool) -> None:
    """Add the checks to the report. Files that were written are removed, also those of a check that took too long.

    Raises Unavailable while as many validations as allowed are running.
    """
    if not places().acquire(blocking=False):
        raise Unavailable("Too many validations of storage are running: try again", retry_after_s=5)
    trial, patience_s = (
        _Trial(profile, credential, keep_folders=keep_folders),
        config.current().storage.validation_timeout_s,
    )
    threading.Thread(target=trial.run, name="storage-trial", daemon=True).start()
    with suppress(TimeoutError):
        trial.ended.result(patience_s)
    checks = list(trial.report.checks)
    report.checks.extend(checks)
    if late := CHECKS[len(checks) :]:
        message = f"The storage did not answer within {patience_s:g} seconds"
        error = Unavailable(message, retry_after_s=5)
        report.checks.append(Check(late[0], CheckStatus.FAILED, int(patience_s * 1000), message, error))
        report.skip("the storage did not answer", *late[1:])


def within(patience_s: float, question: Callable[[], R]) -> R:
    """What `question`, which asks only the storage, returns or raises in that time. Raises Unavailable beyond it."""
    if not places().acquire(blocking=False):
        raise Unavailable("Too many validations of storage are running: try again", retry_after_s=5)
    outcome: Future[R] = Future()

    def ask() -> None:
        try:
            outcome.set_result(question())
        except BaseException as error:  # noqa: BLE001 the caller raises it
            outcome.set_exception(error)
        finally:
            places().release()

    threading.Thread(target=ask, name="storage-trial", daemon=True).start()
    try:
        return outcome.result(max(0.0, patience_s))
    except TimeoutError:
        if outcome.done():
            raise
        raise Unavailable("The storage did not answer in time", retry_after_s=5) from None


@cache
def places() -> threading.Semaphore:
    return threading.Semaphore(config.current().storage.max_validations_at_once)


class _Trial:
    """Runs in a thread of its own; each check is in the report as soon as it has ended."""

    def __init__(self, profile: StorageProfile, credential: StorageCredential | None, *, keep_folders: bool) -> None:
        self.report = Report()
        self.ended: Future[None] = Future()
        self._profile = profile
        self._credential = credential
        self._keep_folders = keep_folders

    def run(self) -> None:
        try:
            self._run()
            self.ended.set_result(None)
        except BaseException as error:  # noqa: BLE001 the caller raises it
            self.ended.set_exception(error)
        finally:
            places().release()

    def _run(self) -> None:
        opened = self._check(CheckName.STORAGE_CLIENT_INITIALIZED, self._open)
        if opened is None:
            self.report.skip("the storage could not be opened", *CHECKS[1:])
            return
        store, probe = opened
        engine = EngineProbe(self._profile, store, probe.file)
        self._check(CheckName.READ_WRITE, probe.write_and_read)
        if self.report.valid:
            self._try_as_engine(engine)
        else:
            self.report.skip("the server itself cannot write and read", *_VENDED)
        self._check(CheckName.CLEANUP, lambda: self._clean_up(probe, engine))

    def _open(self) -> tuple[Storage, Probe]:
        store = backends.storage(self._profile, self._credential)
        return store, Probe(store, self._profile.location)

    def _try_as_engine(self, engine: EngineProbe) -> None:
        issues = self._check(CheckName.VENDED_CREDENTIALS_ISSUED, engine.issue)
        if issues:
            self._check(CheckName.VENDED_CREDENTIALS_READ_WRITE, engine.write_and_read)
            self._check(CheckName.VENDED_CREDENTIALS_SCOPE_ENFORCED, engine.try_to_leave)
        elif issues is None:
            self.report.skip("no credentials were issued", *_VENDED[1:])
        else:
            self.report.checks.pop()
            self.report.skip("this storage profile issues no credentials to engines", *_VENDED)

    def _clean_up(self, probe: Probe, engine: EngineProbe) -> None:
        engine.clean_up()
        probe.clean_up(folders=not (self._keep_folders and self.report.valid))

    def _check(self, name: CheckName, step: Callable[[], R]) -> R | None:
        return self.report.run(name, lambda: _translated(step))


def _translated(step: Callable[[], R]) -> R:
    try:
        return step()
    except StorageUnavailable as error:
        raise Unavailable(f"The storage cannot be used now: {error}", retry_after_s=5) from error
    except StorageError as error:
        raise BadRequest(f"The storage cannot be used: {error}") from error
