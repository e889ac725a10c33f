"""Helm as an outside program: `helm("template", "lw", CHART)`; built from source once."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from standalone.go_programs import GoProgram, pinned_version, provide

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "helm" / "lakewarden"
_PACKAGE: Final = "helm.sh/helm/v3"
_KUBERNETES: Final = pinned_version("kubernetes", "k8s.io/kubernetes").removeprefix("v").split(".")
HELM: Final = GoProgram(
    "helm",
    "helm",
    f"{_PACKAGE}/cmd/helm",
    # as a released one: without them it believes in Kubernetes 1.20
    stamps={
        f"{_PACKAGE}/internal/version.version": pinned_version("helm", _PACKAGE),
        f"{_PACKAGE}/pkg/chartutil.k8sVersionMajor": _KUBERNETES[0],
        f"{_PACKAGE}/pkg/chartutil.k8sVersionMinor": _KUBERNETES[1],
        f"{_PACKAGE}/pkg/lint/rules.k8sVersionMajor": _KUBERNETES[0],
        f"{_PACKAGE}/pkg/lint/rules.k8sVersionMinor": _KUBERNETES[1],
    },
)
_TIMEOUT_S: Final = 420.0


class HelmFailed(AssertionError):
    """It refused; the message holds what it said."""


def helm(*arguments: str | Path, environment: Mapping[str, str] | None = None, enter: Sequence[str] = ()) -> str:
    """What it prints. `enter` is a command that runs another one, such as `nsenter`. Raises HelmFailed."""
    command = [*enter, provide(HELM), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise HelmFailed(f"helm {' '.join(map(str, arguments))}:\n{done.stdout}{done.stderr}")
    return done.stdout
