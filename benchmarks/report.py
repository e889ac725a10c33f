"""The report: one table, the budgets, and what to know about the run; as text and as JSON."""

import os
import platform
from pathlib import Path
from typing import Any

from benchmarks.budgets import BUDGETS, Table
from benchmarks.machine.parts import POSTGRES, SERVER
from benchmarks.results import SUBJECT, YARDSTICK, Result

_HEAD = (
    "scenario",
    "clients",
    "requests/s",
    "(least-most)",
    "subject",
    "p50 ms",
    "p99 ms",
    "server µs",
    "postgres µs",
    "ratio",
    "queries",
    "errors",
)
_NONE = "-"
_SHOWN = 200


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = (line.partition(":") for line in cpuinfo.read_text().splitlines())
        model = next((value.strip() for name, _, value in lines if name.strip() == "model name"), model)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": platform.system() + " " + platform.release(),
        "python": platform.python_version(),
        "load_average": [round(each, 1) for each in os.getloadavg()],
    }


def as_text(results: list[Result], not_served: dict[str, str]) -> str:
    """The table with its footnotes, then the budgets."""
    table = Table(results)
    rows = [_HEAD, *(_row(each, table) for each in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["  ".join(_cell(text, widths[number], number) for number, text in enumerate(row)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += [f"{name}: not served: {reason}" for name, reason in not_served.items()]
    wrong = [
        f"WRONG {each.scenario}, {each.clients} clients, {each.side}: {each.problems[0][:_SHOWN]}"
        for each in results
        if each.problems
    ]
    ledgers = [
        each for each in results if each.scenario in {"commit-apart", "commit-contended"} and each.side == SUBJECT
    ]
    if ledgers and not any(each.problems for each in ledgers):
        acknowledged = sum(one.good for each in ledgers for one in each.rounds)
        lines.append(f"Ledger: {acknowledged} measured commits and those around them: nothing lost, nothing doubled")
    return "\n".join([*lines, *wrong, "", *_budgets(table)])


def as_json(results: list[Result], not_served: dict[str, str], about: dict[str, Any]) -> dict[str, Any]:
    table = Table(results)
    budgets = [
        {
            "what": each.what,
            "unit": each.unit,
            "good": each.good,
            "excellent": each.excellent,
            "found": each.measure(table),
        }
        for each in BUDGETS
    ]
    return {
        **about,
        "results": [each.to_json() for each in results],
        "not_served": not_served,
        "budgets": budgets,
    }


def _row(result: Result, table: Table) -> tuple[str, ...]:
    is_ours = result.side == SUBJECT
    statements = result.statements
    p50, p99 = result.latency_us("p50"), result.latency_us("p99")
    return (
        result.scenario if is_ours else f"  {result.side}",
        str(result.clients),
        f"{result.per_second:,.0f}",
        f"({min(result.rates):,.0f}-{max(result.rates):,.0f})",
        _NONE if is_ours else _number(table.speed(result.scenario, result.clients, result.side), ".2f"),
        _NONE if p50 is None else f"{p50 / 1000:.2f}",
        _NONE if p99 is None else f"{p99 / 1000:.2f}",
        _number(result.cpu_us(SERVER), ",.0f"),
        _number(result.cpu_us(POSTGRES), ",.0f"),
        _NONE
        if result.side == YARDSTICK
        else _number(table.ratio(result.scenario, result.clients, SERVER, side=result.side), ".2f"),
        _NONE if statements is None else f"{statements.queries:.2f}+{statements.transaction:.2f}",
        ", ".join(
            [*(f"{count} of {what}" for what, count in result.errors.items()), *(["WRONG"] if result.problems else [])]
        ),
    )


def _number(value: float | None, form: str) -> str:
    return _NONE if value is None else format(value, form)


def _cell(text: str, width: int, column: int) -> str:
    return text.ljust(width) if column in {0, len(_HEAD) - 1} else text.rjust(width)


def _budgets(table: Table) -> list[str]:
    """A line for each budget that this run measured."""
    lines = []
    for each in BUDGETS:
        found = each.measure(table)
        if found is not None:
            unit = f" {each.unit}" if each.unit else ""
            limits = f"good ≤ {each.good:g}, excellent ≤ {each.excellent:g}"
            lines.append(f"  {each.what:58} {found:7.2f}{unit:3}  {limits:28}  {each.verdict(found)}")
    return ["Budgets (x: against the yardstick's loadTable of 4 KB):", *lines] if lines else []
