"""Go programs that tests run as real servers, built once from the modules below `tools/` and kept in the cache.

Go builds from its own caches: a new version of one program compiles only what has changed.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from pipeline.spark.jars import cache_folder
from tests.servers import staging

TOOLS = Path(__file__).parents[2] / "tools"
_BUILD_TIMEOUT_S = 3600
_TAIL_LINES = 15


class GoProgramUnavailable(AssertionError):
    """It is not in the cache and cannot be built; the message says why."""


@dataclass(frozen=True)
class GoProgram:
    """A main package of a module whose versions are pinned in `tools/<module>/go.mod` and `go.sum`.

    `stamps` are string variables of the program that the linker sets, by `<import path>.<name>`.
    """

    name: str
    module: str
    package: str
    stamps: Mapping[str, str] = field(default_factory=dict)

    @property
    def flags(self) -> tuple[str, ...]:
        linker = ["-s", "-w", *(f"-X={name}={value}" for name, value in self.stamps.items())]
        return ("-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags={' '.join(linker)}")


def pinned_version(module: str, dependency: str, *, tools: Path = TOOLS) -> str:
    """The version of `dependency` in `tools/<module>/go.mod`, as "v1.2.3"."""
    for line in (tools / module / "go.mod").read_text().splitlines():
        match line.split():
            case [name, version, *_] if name == dependency:
                return version
    raise GoProgramUnavailable(f"tools/{module}/go.mod does not require {dependency}: add it with `go get`.")


def program_path(program: GoProgram, *, tools: Path = TOOLS, cache: Path | None = None) -> Path:
    """Where the program is, or would be: another version, flag or kind of machine is another path."""
    digest = hashlib.sha256("\0".join([program.package, *program.flags, sys.platform, platform.machine()]).encode())
    for pins in ("go.mod", "go.sum"):
        digest.update((tools / program.module / pins).read_bytes())
    return (cache or cache_folder()) / "go" / f"{program.name}-{digest.hexdigest()[:16]}"


def provide(
    program: GoProgram, *, tools: Path = TOOLS, cache: Path | None = None, progress: TextIO | None = None
) -> Path:
    """The executable, built if it is not in the cache yet; two processes at once build it once.

    What is done is said in a line each to `progress` (stderr). Raises `GoProgramUnavailable`.
    """
    target = program_path(program, tools=tools, cache=cache)
    if target.is_file():
        return target
    told = progress or sys.stderr
    print(f"{program.name} is not built yet: this takes minutes, once; it is kept as {target}", file=told, flush=True)
    with staging.locked(target.parent) as folder:
        if not target.is_file():  # another process was not quicker
            started = time.monotonic()
            built = _build(program, directory=tools / program.module, staging=folder)
            built.rename(target)
            seconds, size = time.monotonic() - started, target.stat().st_size / 1e6
            print(f"{program.name} is built: {seconds:.0f} s, {size:.0f} MB", file=told, flush=True)
    return target


def _build(program: GoProgram, *, directory: Path, staging: Path) -> Path:
    go = shutil.which("go")
    if go is None:
        raise GoProgramUnavailable(f"{program.name} must be built, but there is no `go` on the PATH: install Go.")
    output = staging / program.name
    command = [go, "build", *program.flags, "-o", str(output), program.package]
    # static, so that no C compiler is needed; a workspace of somebody's must not change the versions
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=_BUILD_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise GoProgramUnavailable(f"{program.name} was not built within {_BUILD_TIMEOUT_S} s.") from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.rstrip().splitlines()[-_TAIL_LINES:])
        raise GoProgramUnavailable(f"`go build {program.package}` ended with {done.returncode}:\n{tail}")
    return output
