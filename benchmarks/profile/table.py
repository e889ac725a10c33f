"""The profiles of a run as Markdown: microseconds of CPU per request by layer, and the functions that cost most."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.profile.rules import LAYERS, OTHER, Shares

_FUNCTIONS = 12


@dataclass(frozen=True, slots=True)
class Profile:
    """One scenario on one side: `cpu_us` is the server's whole cost of a request, `shares` how it is spent."""

    scenario: str
    side: str
    per_second: float
    cpu_us: float
    shares: Shares

    def layer_us(self, layer: str) -> float:
        return self.cpu_us * self.shares.share(layer)


def as_markdown(profiles: Sequence[Profile]) -> str:
    return "\n".join([*_layers(profiles), "", *_functions(profiles)])


def _layers(profiles: Sequence[Profile]) -> list[str]:
    heads = [f"{each.scenario}, {each.side}" for each in profiles]
    lines = [_row(["µs of server CPU per request", *heads]), _row(["---", *("--:" for _ in profiles)])]
    seen = [layer for layer in [*LAYERS, OTHER] if any(each.shares.layers[layer] for each in profiles)]
    lines += [_row([layer, *(f"{each.layer_us(layer):,.0f}" for each in profiles)]) for layer in seen]
    lines.append(_row(["**all**", *(f"**{each.cpu_us:,.0f}**" for each in profiles)]))
    lines.append(_row(["requests/s", *(f"{each.per_second:,.0f}" for each in profiles)]))
    lines.append(_row(["samples", *(f"{each.shares.total:,}" for each in profiles)]))
    return lines


def _functions(profiles: Sequence[Profile]) -> list[str]:
    """With what they call that belongs to no layer (codecs, the standard library)."""
    lines = []
    for each in profiles:
        lines += [f"**{each.scenario}, {each.side}**: dearest functions", ""]
        lines += [_row(["µs", "layer", "function"]), _row(["--:", "---", "---"])]
        for (layer, where), count in each.shares.functions.most_common(_FUNCTIONS):
            cost = each.cpu_us * count / each.shares.total
            lines.append(_row([f"{cost:,.0f}", layer, f"`{where}`"]))
        lines.append("")
    return lines


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
