"""Profiles that are kept in a file, to be compared with later ones."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from benchmarks.failures import BenchmarkError
from benchmarks.profile.rules import Shares
from benchmarks.profile.table import Profile, as_markdown


@dataclass(frozen=True, slots=True)
class Record:
    """The profiles of a run; `headline` says how they were measured."""

    headline: str
    profiles: Sequence[Profile]

    def write(self, file: Path) -> None:
        content = {"headline": self.headline, "profiles": [_plain(each) for each in self.profiles]}
        file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> Self:
        """Raises BenchmarkError for a file that `write` has not written."""
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            return cls(content["headline"], [_profile(each) for each in content["profiles"]])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BenchmarkError(f"{file} is not a kept profile: {error!r}") from error

    def compared_with(self, after: "Record") -> str:
        """The scenarios that both have, side by side, as Markdown."""
        pairs = [
            (replace(old, side="old"), replace(new, side="new"))
            for old in self.profiles
            for new in after.profiles
            if (old.scenario, old.side) == (new.scenario, new.side)
        ]
        heads = f"old: {self.headline}\n\nnew: {after.headline}"
        return f"{heads}\n\n{as_markdown([each for pair in pairs for each in pair])}"


def _plain(profile: Profile) -> dict[str, Any]:
    functions = [[*what, count] for what, count in profile.shares.functions.most_common()]
    return {
        "scenario": profile.scenario,
        "side": profile.side,
        "per_second": profile.per_second,
        "cpu_us": profile.cpu_us,
        "samples": {"layers": dict(profile.shares.layers), "functions": functions},
    }


def _profile(plain: dict[str, Any]) -> Profile:
    samples = plain["samples"]
    functions = Counter({(layer, where): count for layer, where, count in samples["functions"]})
    found = Shares(Counter(samples["layers"]), functions)
    return Profile(plain["scenario"], plain["side"], plain["per_second"], plain["cpu_us"], found)
