"""What a soak found, for people and for programs."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from tests.soak.book import Book
from tests.soak.final import resolved
from tests.soak.ledger import Verdict
from tests.soak.timeline import median

_HISTORIES = 20
_COLUMNS = ("fault", "times", "checked", "lost", "doubled", "wrong", "unanswered", "unknown", "recovery s", "worker s")


@dataclass(frozen=True)
class Report:
    """`repeat` are the arguments of the same soak; `rows` one of each kind of fault, then of the quiet and the end."""

    repeat: str
    seconds: float
    rows: list[dict[str, Any]]
    totals: dict[str, Any]
    findings: list[dict[str, Any]]

    @property
    def is_good(self) -> bool:
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def as_text(self) -> str:
        rows = [_COLUMNS, *(_cells(each) for each in (*self.rows, self.totals))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
        table = "\n".join(
            "  ".join(
                cell.ljust(width) if not number else cell.rjust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        )
        verdict = "Nothing was lost, doubled or answered wrongly." if self.is_good else self._told()
        head = f"{self.totals['checked']} checked operations, {self.totals['times']} faults, {self.seconds / 60:.1f} minutes"
        head += f"; {self.totals['commits']} acknowledged commits to shared tables"
        return f'{head}\n\n{table}\n\n{verdict}\nThe same again: make soak ARGS="{self.repeat}"\n'

    def _told(self) -> str:
        lines = [f"{len(self.findings)} findings:"]
        for finding in self.findings[:_HISTORIES]:
            lines.append(f"- [{finding['fault']}] {finding['verdict']}: {finding['what']}")
            lines += [f"    {_event(each)}" for each in finding["history"]]
        more = len(self.findings) - _HISTORIES
        return "\n".join([*lines, *([f"... and {more} more, in the JSON file"] if more > 0 else [])])


def made(book: Book, *, repeat: str, seconds: float) -> Report:
    """The report of all that the book holds."""
    kinds = sorted({each.kind for each in book.timeline.faults})
    verdicts = {
        kind: Counter(str(each.verdict) for at, each in book.findings if at == kind) for kind, _ in book.findings
    }
    unknown = resolved(book)
    rows = [_row(book, kind, verdicts, unknown) for kind in (*kinds, *sorted(set(book.operations) - set(kinds)))]
    summed = ("times", "checked", "lost", "doubled", "wrong", "unanswered", "applied", "not-applied")
    totals: dict[str, Any] = {"fault": "all", **{name: sum(row[name] for row in rows) for name in summed}}
    times = [each.recovery_s for each in book.timeline.faults if each.recovery_s is not None]
    at_work = [each.worker_s for each in book.timeline.faults if each.worker_s is not None]
    totals["commits"] = book.commits
    totals |= {"recovery-s": _spread(times), "worker-s": _spread(at_work)}
    findings = [
        {"fault": kind, "verdict": str(each.verdict), "what": each.what, "at": each.at, "history": list(each.history)}
        for kind, each in book.findings
    ]
    return Report(repeat, seconds, rows, totals, findings)


def _row(book: Book, kind: str, verdicts: dict[str, Counter[str]], unknown: dict[str, Counter[str]]) -> dict[str, Any]:
    faults = [each for each in book.timeline.faults if each.kind == kind]
    found = verdicts.get(kind, Counter())
    ended = unknown.get(kind, Counter())
    return {
        "fault": kind,
        "times": len(faults),
        "checked": book.operations[kind],
        **{str(verdict): found[str(verdict)] for verdict in Verdict},
        "unanswered": book.unanswered[kind],
        "applied": ended["applied"],
        "not-applied": ended["not applied"],
        "recovery-s": _spread([each.recovery_s for each in faults if each.recovery_s is not None]),
        "worker-s": _spread([each.worker_s for each in faults if each.worker_s is not None]),
    }


def _spread(seconds: list[float]) -> dict[str, float] | None:
    middle = median(seconds)
    return None if middle is None else {"p50": round(middle, 2), "max": round(max(seconds), 2)}


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    unknown = f"{row['applied'] + row['not-applied']} ({row['applied']} applied)"
    times = [_range(row[name]) for name in ("recovery-s", "worker-s")]
    counts = [str(row[name]) for name in ("times", "checked", "lost", "doubled", "wrong", "unanswered")]
    return (row["fault"], *counts, unknown, *times)


def _range(spread: dict[str, float] | None) -> str:
    return "-" if spread is None else f"{spread['p50']:.1f} / {spread['max']:.1f}"


def _event(event: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in event.items() if value not in {None, ""})
