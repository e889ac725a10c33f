"""The results of checks: every check yields findings, and the command prints them."""

from dataclasses import asdict, dataclass
from enum import StrEnum


class State(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `fix` says what to do, for everything that is not ok. Neither may contain a secret."""

    state: State
    name: str
    sentence: str
    fix: str | None = None

    def plain(self) -> dict[str, str | None]:
        return asdict(self)

    def __str__(self) -> str:
        line = f"{self.state:<4}  {self.name}: {self.sentence}"
        return f"{line}\n      fix: {self.fix}" if self.fix else line


def ok(name: str, sentence: str) -> Finding:
    return Finding(State.OK, name, sentence)


def warn(name: str, sentence: str, *, fix: str) -> Finding:
    return Finding(State.WARN, name, sentence, fix)


def fail(name: str, sentence: str, *, fix: str) -> Finding:
    return Finding(State.FAIL, name, sentence, fix)
