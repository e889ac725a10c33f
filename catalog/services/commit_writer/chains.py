"""The commits of one group, each computed on the result of the one before, with their metadata files."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Final

from catalog.documents import pack
from catalog.services import limits, metadata_files
from catalog.services.commit_writer import file_threads
from catalog.services.contracts import gate, verifiers
from catalog.services.pointer import Commit, NewMetadata, Stored, moved
from lakewarden import config
from lakewarden.errors import CommitStateUnknown, Unavailable
from lakewarden.hot.fair_threads import FairThreads
from lakewarden.hot.pace import PACE
from lakewarden.memory import UNCOUNTED, working

ON_LOOP: Final = 256 * 1024
"""Bytes of a document, not packed: a larger one would block the event loop for too long."""
_THREADS: Final = 2
"""For larger documents. They never wait, not even for the database: a locked row waits for what they compute."""


@dataclass(slots=True, eq=False)
class Asked:
    """A commit whose caller waits for its outcome: a state, an error, or None if the writer does not handle it."""

    commit: Commit
    number: int
    outcome: asyncio.Future[Stored | None]
    has_begun: bool = False
    caller: str = field(init=False)
    epoch: int = field(init=False)
    """The authorization epoch of the caller's decision."""
    place: tuple[object, ...] = field(init=False)
    """The table's namespace and name at the time of the caller's decision, and the epoch of the decision."""

    def __post_init__(self) -> None:
        tabular = self.commit.granted.target
        self.caller = self.commit.granted.context.caller.id
        self.epoch = tabular.namespace.warehouse.project.authz_epoch
        self.place = tabular.namespace_id, tabular.name_key, self.epoch

    @property
    def is_verified(self) -> bool:
        """Whether a verifier of a data contract is asked about it."""
        return self.commit.rules is not None and bool(self.commit.rules.verifiers)

    def tell(self, outcome: Stored | Exception | None) -> None:
        if self.outcome.done():
            return  # its caller has gone away
        if isinstance(outcome, Exception):
            self.outcome.set_exception(outcome)
        else:
            self.outcome.set_result(outcome)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The outcome of a commit, provided that all steps before it are committed; `new` is None if it changes nothing."""

    asked: Asked
    base: Stored
    outcome: Stored | Exception
    new: NewMetadata | None = None
    file: bytes = b""


@dataclass(slots=True)
class Chain:
    """Steps from `base`; the states of those that change something follow one another."""

    base: Stored
    steps: list[Step] = field(default_factory=list)
    changes: list[tuple[Step, NewMetadata, Stored]] = field(default_factory=list)

    def append(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self.steps.append(step)
            if step.new and isinstance(step.outcome, Stored):
                self.changes.append((step, step.new, step.outcome))

    @property
    def tip(self) -> Stored:
        return self.changes[-1][2] if self.changes else self.base

    def discard(self) -> None:
        """Remove its files, without waiting for it; only for chains that were certainly not committed."""
        file_threads.discard(self.base.tabular.namespace.warehouse, [new.file for _, new, _ in self.changes])

    def tell(self) -> None:
        """Give each step its outcome: all of them are committed."""
        for step in self.steps:
            step.asked.tell(step.outcome)

    def tell_unknown(self, error: CommitStateUnknown) -> None:
        """It is unknown whether the steps are committed; steps that change nothing are left to the ordinary path."""
        for step in self.steps:
            step.asked.tell(error if step.new else None)


def tell_all(group: Iterable[Asked], outcome: Exception | None) -> None:
    for each in group:
        each.tell(outcome)


async def build(base: Stored, asked: Sequence[Asked]) -> Chain:
    """Compute the commits, each based on the one before, and write their files.

    A commit that a verifier refuses, or whose file cannot be written, gets the error, and the others are computed
    without it. Commits that the writer does not handle get None.
    """
    chain, left = Chain(base), list(asked)
    while left:
        steps = await _computed(chain.tip, left)
        failed = await _refused(steps)
        ready = steps[: _first(failed, steps)]
        changing = [step for step in ready if step.new]
        warehouse = base.tabular.namespace.warehouse
        results = await file_threads.store(warehouse, [(step.new.file, step.file) for step in changing if step.new])
        failed |= {step: error for step, error in zip(changing, results, strict=True) if error is not None}
        valid = _first(failed, steps)
        chain.append(steps[:valid])
        file_threads.discard(warehouse, [step.new.file for step in ready[valid:] if step.new and step not in failed])
        for step, error in failed.items():
            step.asked.tell(error)
        left = [step.asked for step in steps[valid:] if step not in failed]
    return chain


def _first(failed: Mapping[Step, Exception], steps: Sequence[Step]) -> int:
    return next((at for at, step in enumerate(steps) if step in failed), len(steps))


async def _refused(steps: Sequence[Step]) -> dict[Step, Exception]:
    """The errors of verifiers that are asked about the steps, all at once.

    Of several refusals only the first one counts: the steps after it were based on it, and are asked about again.
    """
    asked = [step for step in steps if step.new and step.asked.is_verified]
    errors = await asyncio.gather(*map(_asked_about, asked))
    failed: dict[Step, Exception] = {}
    for step, error in zip(asked, errors, strict=True):
        if isinstance(error, Unavailable) or (error is not None and not failed):
            failed[step] = error
    return failed


async def _asked_about(step: Step) -> Exception | None:
    """It is one commit's alone, whatever it was."""
    one = step.asked.commit
    assert step.new is not None  # noqa: S101 the caller has checked both
    assert one.rules is not None  # noqa: S101
    try:
        proposal = one.propose(step.base, step.new)
        violations = await verifiers.asked(proposal, one.rules.verifiers)
    except Exception as error:  # noqa: BLE001
        return error
    return gate.refusal(proposal, violations) if violations else None


async def _computed(tip: Stored, asked: Sequence[Asked]) -> list[Step]:
    steps: list[Step] = []
    for each in asked:
        if each.outcome.done() or not _hold(each, limits.WHILE_WORKED_ON * tip.document.length):
            each.tell(None)
            continue
        work = partial(_step, tip, each)
        if tip.document.length <= ON_LOOP:
            step = await PACE.run(each.caller, work)
        else:
            try:
                step = await _threads().run(each.caller, work)
            except Unavailable as error:
                each.tell(error)
                continue
        if step is None:
            each.tell(None)
            continue
        steps.append(step)
        if step.new and isinstance(step.outcome, Stored):
            tip = step.outcome
    return steps


def _step(tip: Stored, asked: Asked) -> Step | None:
    """None if the writer does not handle this commit."""
    try:
        new = asked.commit.compute(tip, asked.commit.rules)
        if new is None:
            return Step(asked, tip, tip)
        if new.location != tip.tabular.location:
            return None
        limits.check(new, tip)
        file, content = metadata_files.prepare(
            tip.tabular.namespace.warehouse,
            new.location,
            new.encoded,
            version=tip.tabular.version,
            properties=new.properties,
        )
    except Exception as error:  # noqa: BLE001 it is one commit's alone, whatever it was
        return Step(asked, tip, error)
    new = replace(new, file=file)
    state = Stored(moved(tip.tabular, new), pack(file, new.encoded), new.encoded, new.opened)
    return Step(asked, tip, state, new, content)


@cache
def _threads() -> FairThreads:
    settings = config.current().server
    return FairThreads(
        "commits",
        threads=_THREADS,
        queue=settings.queue,
        percent=settings.caller_share_percent,
        patience_s=settings.queue_timeout_s,
    )


def _hold(asked: Asked, size: int) -> bool:
    """Whether there is enough memory for a commit; it is released when the commit has its outcome."""
    if size < UNCOUNTED:
        return True
    if not working().try_take(size, asked.caller):
        return False
    asked.outcome.add_done_callback(lambda _: working().give_back(size, asked.caller))
    return True
