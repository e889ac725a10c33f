"""What tests look at beside the answers: recorded changes, properties and files."""

import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from tests.integration.catalog.lake import Lake

Recorded = Callable[[], list[str]]


def local(location: str) -> Path:
    """The path of a `file://` location."""
    assert location.startswith("file:///"), location
    return Path(urlsplit(location).path)


def own_properties(lake: Lake, name: str) -> set[str]:
    """The names of the properties of a table that the tests have set."""
    return {key for key in lake.load(name)["metadata"]["properties"] if not key.startswith("write.")}


def metadata_files(base: Path) -> set[Path]:
    return set(base.rglob("*.metadata.json"))


def pointed_at(lake: Lake, *names: str) -> set[Path]:
    """The metadata files that tables name: the current one of each, and those of its metadata log."""
    found = [lake.load(name) for name in names]
    log = {local(each["metadata-file"]) for state in found for each in state["metadata"]["metadata-log"]}
    return log | {local(state["metadata-location"]) for state in found}


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until `holds()`, because some effects, such as the removal of files, come after the answer."""
    deadline = threading.Event()
    for _ in range(1500):
        if holds():
            return
        deadline.wait(0.02)
    assert holds()
