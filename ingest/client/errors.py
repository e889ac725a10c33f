"""Why changes could not be sent; `lakewarden ingest send` shows the message.

IngestError
├── Refused             the gateway does not accept a batch, and would not accept it later
├── ConnectionLost      the socket could not be opened, or ended; the client tries again by itself
├── WrongLine           a line of the input cannot become an event
└── NotResumable        what was sent before does not fit the input, or the gateway
"""

from lakewarden.errors import LakewardenError


class IngestError(LakewardenError):
    """Base: says what was not sent, and why."""


class Refused(IngestError):
    """`reason` is the gateway's word for it (`invalid_format`, …), `sequence_number` the batch's, if any."""

    def __init__(self, message: str, *, reason: str, sequence_number: int | None) -> None:
        super().__init__(message)
        self.reason = reason
        self.sequence_number = sequence_number


class ConnectionLost(IngestError):
    """`retry_after_s`: how long the server asked to wait; `was_denied`: a fresh token may help."""

    def __init__(self, message: str, *, retry_after_s: float = 0.0, was_denied: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.was_denied = was_denied


class WrongLine(IngestError):
    """`line` counts from 1."""

    def __init__(self, line: int, fault: str) -> None:
        super().__init__(f"line {line}: {fault}")
        self.line = line


class NotResumable(IngestError):
    pass
