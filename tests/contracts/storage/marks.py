"""Secrets with a mark, and the search for them in whatever a test has seen, in each encoding in which they may hide."""

import html
import json
import re
from base64 import b64encode
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

SIGNATURES = re.compile(r"(?i)Signature=[0-9a-f]{64}|[?&]sig=[A-Za-z0-9%]{20}|Bearer [A-Za-z0-9._~+/-]{20}")
"""What opens a store for some minutes, whatever key it was made with."""


def spellings(value: str) -> set[str]:
    """As text, in URLs, JSON, XML and Python, in hexadecimal digits, and within any longer text in Base64."""
    raw = value.encode()
    found = {value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1], html.escape(value)}
    found |= {repr(value)[1:-1], raw.hex()}
    for before in range(3):
        # without the characters that depend on what stands before and after
        inner = b64encode(b"\0" * before + raw).decode()[4 if before else 0 : -4]
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {each.lower() for each in found}


@dataclass
class Marks:
    """`values` are the secrets by name, `seen` what they must not be in, by where that was."""

    values: dict[str, str]
    seen: list[tuple[str, str]] = field(default_factory=list)

    def note(self, where: str, text: str) -> None:
        self.seen.append((where, text))

    def leaks(self) -> list[str]:
        """Where which secret is, and what is around it."""
        sought = {name: spellings(value) for name, value in self.values.items()}
        found = []
        for where, text in self.seen:
            low = text.lower()
            for name, each in sought.items():
                at = min((low.find(spelling) for spelling in each if spelling in low), default=-1)
                if at >= 0:
                    found.append(f"{name} in {where}: …{text[max(0, at - 60) : at + 20]}…")
        return found
