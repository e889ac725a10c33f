"""`lakewarden doctor`: prints the findings; the command line calls `main`."""

import json
import os
from collections import Counter

import click

from lakewarden.doctor.checks import run
from lakewarden.doctor.findings import Finding, State


def main(*, as_json: bool) -> int:
    """Check the configuration in this process's environment and print the findings. Returns 1 if a check failed."""
    findings = run(os.environ)
    click.echo(as_document(findings) if as_json else as_text(findings))
    return 1 if any(finding.state is State.FAIL for finding in findings) else 0


def as_document(findings: list[Finding]) -> str:
    """`{"ok": bool, "findings": [{state, name, sentence, fix}]}`."""
    healthy = all(finding.state is not State.FAIL for finding in findings)
    return json.dumps({"ok": healthy, "findings": [finding.plain() for finding in findings]}, indent=2)


def as_text(findings: list[Finding]) -> str:
    """A line for each check with its remedy below, and a summary at the end."""
    count = Counter(finding.state for finding in findings)
    summary = (
        f"{len(findings)} checks: {count[State.OK]} ok, {count[State.WARN]} to look at, {count[State.FAIL]} failed"
    )
    return "\n".join([*map(str, findings), summary])
