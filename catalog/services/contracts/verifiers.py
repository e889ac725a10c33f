"""Asks the verifiers of the contracts that apply about a change, over HTTP; answers are never remembered.

Each verifier has threads of its own, so that one that hangs delays nobody but those who ask it, and those who ask wait
no longer than its time-out, whatever it does.
"""

import asyncio
import concurrent.futures
import logging
import re
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import Final, Literal, NamedTuple

import msgspec

from catalog.services.contracts.combined import Level
from catalog.services.contracts.documents import Verifier
from catalog.services.contracts.judging import Violation
from catalog.services.contracts.proposals import Proposal
from lakewarden import config
from lakewarden.errors import Unavailable
from lakewarden.fair_shares import Shares
from lakewarden.ids import new_id
from lakewarden.signed_posts import PostFailed, Receiver, Reply, SignedPosts

logger = logging.getLogger(__name__)

_MOST_REASONS: Final = 10
_LONGEST_REASON: Final = 500
_OK: Final = 200
_SHARE_PERCENT: Final = 50
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]+")

Asked = Sequence[tuple[Verifier, Level]]


class _Answer(msgspec.Struct):
    decision: Literal["allow", "deny"]
    reasons: list[str] = []


_ANSWER: Final = msgspec.json.Decoder(_Answer)


class _Failed(Exception):
    """It is not known what the verifier says; the message says why."""


class _Line(NamedTuple):
    """The way to a verifier."""

    posts: SignedPosts
    threads: ThreadPoolExecutor
    timeout_s: float


class _Question(NamedTuple):
    verifier: Verifier
    level: Level
    line: _Line
    reply: Future[Reply]


def ask(proposal: Proposal, verifiers: Asked) -> list[Violation]:
    """What the verifiers say against the change. Called in a thread that answers a request, outside of transactions.

    Raises Unavailable if one that must agree does not answer, or if half of the threads wait for verifiers already.
    """
    found, questions = _begin(proposal, verifiers)
    if questions:
        name = questions[0].verifier.name
        if not _waiting().take(name):
            raise Unavailable(f"Too many requests wait for the verifier {name!r}; nothing was changed. Try again")
        try:
            concurrent.futures.wait([each.reply for each in questions], timeout=_patience_s(questions))
        finally:
            _waiting().give_back(name)
    return [*found, *_told(questions)]


async def asked(proposal: Proposal, verifiers: Asked) -> list[Violation]:
    """As `ask`, on the event loop, where those who wait take no thread."""
    found, questions = _begin(proposal, verifiers)
    if questions:
        replies = [asyncio.wrap_future(each.reply) for each in questions]
        for reply in replies:
            reply.add_done_callback(_seen)
        await asyncio.wait(replies, timeout=_patience_s(questions))
    return [*found, *_told(questions)]


def _begin(proposal: Proposal, verifiers: Asked) -> tuple[list[Violation], list[_Question]]:
    changes_definition = proposal.changes_definition
    concerned = [each for each in verifiers if changes_definition or each[0].asked_about == "every-change"]
    if not concerned:
        return [], []
    identifier = new_id()
    body, most = proposal.body(identifier), config.current().contracts.max_verified_bytes
    if len(body) > most:
        reason = f"would be asked about {len(body)} bytes, at most {most} are allowed (contracts.max_verified_bytes)"
        return [_violation(verifier, reason, level) for verifier, level in concerned], []
    questions = []
    for verifier, level in concerned:
        line = _line(verifier.name)
        if line is None:
            _fail(verifier, level, _Failed("is not configured on this server (contracts.verifiers)"))
            continue
        post = partial(line.posts.post, str(identifier), body, content_type="application/json")
        # in the request's context, to which its trace belongs
        reply = line.threads.submit(copy_context().run, post)
        questions.append(_Question(verifier, level, line, reply))
    return [], questions


def _told(questions: Sequence[_Question]) -> list[Violation]:
    found = []
    for each in questions:
        try:
            answer = _answer(each)
        except _Failed as error:
            _fail(each.verifier, each.level, error)
            continue
        if answer.decision == "deny":
            said = "; ".join(map(_plain, answer.reasons[:_MOST_REASONS])) or "it gave no reason"
            found.append(_violation(each.verifier, f"denied the change: {said}", each.level))
    return found


def _answer(question: _Question) -> _Answer:
    if not question.reply.done():
        question.reply.cancel()
        raise _Failed(f"did not answer within {question.line.timeout_s:g} s")
    try:
        status, content = question.reply.result()
    except PostFailed as error:
        raise _Failed(f"was not reached: {error}") from error
    except concurrent.futures.CancelledError as error:
        raise _Failed("was not asked in time") from error
    if status != _OK:
        raise _Failed(f"answered {status}, and 200 is expected")
    try:
        return _ANSWER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _Failed(f"answered something else than a decision: {_plain(str(error))}") from error


def _fail(verifier: Verifier, level: Level, error: _Failed) -> None:
    """Raises Unavailable unless the contract lets changes pass that cannot be verified."""
    sentence = f"The verifier {verifier.name!r} of the data contract of {level} {error}"
    if verifier.on_failure == "allow":
        logger.warning("%s: the change passes, as the contract says", sentence)
        return
    raise Unavailable(f"{sentence}; nothing was changed. Try again", retry_after_s=5)


def _violation(verifier: Verifier, reason: str, level: Level) -> Violation:
    return Violation(f"verifier {verifier.name}", "", reason, level)


def _plain(text: str) -> str:
    return _CONTROL.sub(" ", text[:_LONGEST_REASON])


def _patience_s(questions: Sequence[_Question]) -> float:
    return max(each.line.timeout_s for each in questions)


def _seen(reply: "asyncio.Future[Reply]") -> None:
    """Otherwise the loop would log an error that comes when nobody waits any more."""
    if not reply.cancelled():
        reply.exception()


@cache
def _waiting() -> Shares:
    return Shares(max(2, config.current().server.threads // 2), percent=_SHARE_PERCENT)


@cache
def _line(name: str) -> _Line | None:
    settings = config.current().contracts.verifiers.get(name)
    if settings is None:
        return None
    receiver = Receiver(
        what=f"verifier {name!r}",
        url=settings.url,
        secret=settings.secret.get_secret_value(),
        timeout_s=settings.timeout_s,
        ca_file=settings.ca_file,
        allow_private_addresses=settings.allow_private_addresses,
        setting=f"LAKEWARDEN__CONTRACTS__VERIFIERS__{name.upper()}__ALLOW_PRIVATE_ADDRESSES",
    )
    threads = ThreadPoolExecutor(settings.threads, thread_name_prefix=f"verifier-{name}")
    return _Line(SignedPosts(receiver, connections=settings.threads), threads, settings.timeout_s)
