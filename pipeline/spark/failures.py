"""Turns Spark's exceptions into errors of Lakewarden with a one-sentence message."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.errors import (
    CommitFailed,
    Forbidden,
    InternalError,
    LakewardenError,
    NotAuthorized,
    NotFound,
    Unavailable,
)
from pipeline.spark.errors import GatewayFailed

MAX_CAUSES = 20
_RULES: tuple[tuple[str, str, type[LakewardenError], str], ...] = (
    # Java class, pattern of its message, our error, what we say before its message
    (r"\.NotAuthorizedException$", "", NotAuthorized, "401, not authorized"),
    (r"\.ForbiddenException$", "", Forbidden, "403, forbidden"),
    (r"\.NoSuch\w+Exception$", "", NotFound, "404, not found"),
    (r"\.RESTException$", r"\b404\b", NotFound, "404, not found"),
    (r"\.CommitFailedException$", "", CommitFailed, "409, the commit failed"),
    (r"\.Service\w+Exception$", "", Unavailable, "the catalog could not answer"),
    (r"(ConnectException|NoHttpResponseException|SocketTimeoutException)$", "", Unavailable, "no answer"),
    (r"", r"No space left on device", Unavailable, "the disk is full"),
)


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Raises what Spark, py4j or the connection to the JVM raise inside as a `LakewardenError`.

    Use it inside the session: a Java exception cannot be read any more when its JVM is gone.
    """
    try:
        yield
    except (Py4JError, PySparkException, ConnectionError) as error:
        raise explained(error) from None


def explained(error: Exception) -> LakewardenError:
    """Our error for one of Spark, py4j or the connection to the JVM; our own stay as they are."""
    if isinstance(error, LakewardenError):
        return error
    origin = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    if origin is not None:
        return classify(_causes(origin))
    if isinstance(error, PySparkException):
        return InternalError(f"Spark failed: {error}")
    if not isinstance(error, Py4JError | ConnectionError):
        return InternalError(f"{type(error).__name__}: {error}")
    return GatewayFailed("Spark's JVM ended in the middle of the job; was it killed, or out of memory?")


def classify(causes: Sequence[tuple[str, str]]) -> LakewardenError:
    """Our error for a chain of Java exceptions, outermost first, each as (class, message).

    One that no rule knows is an `InternalError`; without any, the JVM could not even tell.
    """
    for name, message in causes:
        for named, said, kind, sentence in _RULES:
            if re.search(named, name) and re.search(said, message):
                return kind(f"Spark reports {sentence}: {_first_line(message) or name}")
    if not causes:
        return GatewayFailed("Spark's JVM ended while it reported an error; was it killed, or out of memory?")
    # what is outermost often says only that something failed; the reason is innermost
    return InternalError(f"Spark failed: {'; because of '.join(dict.fromkeys(map(_said, (causes[0], causes[-1]))))}")


def _said(cause: tuple[str, str]) -> str:
    name, message = cause
    return f"{name}: {_first_line(message) or 'no message'}"


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "")


def _causes(throwable: Any) -> list[tuple[str, str]]:  # noqa: ANN401  a py4j object
    found: list[tuple[str, str]] = []
    try:
        while throwable is not None and len(found) < MAX_CAUSES:
            found.append((throwable.getClass().getName(), throwable.getMessage() or ""))
            throwable = throwable.getCause()
    except (Py4JError, ConnectionError):  # the JVM went away meanwhile: what was learned so far counts
        pass
    return found
