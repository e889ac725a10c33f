from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.spark import java
from pipeline.spark.errors import JavaNotFound
from pipeline.spark.java import find_java


class Machine:
    """A machine with fake Javas: their answers come from a table instead of a process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.versions: dict[Path, str] = {}
        self.modules: dict[Path, str] = {}

    def install(self, place: str, version: str, *, modules: str = "java.base@0") -> Path:
        home = self.root / place
        (home / "bin").mkdir(parents=True)
        executable = home / "bin/java"
        executable.write_text("")
        executable.chmod(0o755)
        self.versions[executable], self.modules[executable] = version, modules
        return home

    def run(self, executable: Path, *arguments: str) -> str:
        if arguments == ("--list-modules",):
            return self.modules[executable]
        version = self.versions[executable]
        home = executable.parent.parent
        return f"    java.home = {home}\n    java.specification.version = {version}\n" if version else ""

    def find(self, environ: Mapping[str, str] | None = None, *, bundled: Path | None = None) -> java.Java:
        nowhere = self.root / "nowhere"
        return find_java(environ=environ or {}, folders=[self.root / "jvm"], bundled=bundled or nowhere)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setattr(java, "_run", made.run)
    return made


def test_java_home_goes_before_path(machine: Machine) -> None:
    chosen, other = machine.install("chosen", "21"), machine.install("other", "17")
    found = machine.find({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")})
    assert (found.home, found.major, found.source) == (chosen, 21, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8", "11", "22", "25"])
def test_java_of_another_major_on_path_is_passed_over(machine: Machine, version: str) -> None:
    refused = machine.install("refused", version)
    machine.install("jvm/seventeen", "17")
    found = machine.find({"PATH": str(refused / "bin")})
    assert (found.home.name, found.major) == ("seventeen", 17)


def test_java_that_does_not_run_is_passed_over(machine: Machine) -> None:
    broken = machine.install("broken", "")
    bundled = machine.install("bundled", "21")
    found = machine.find({"JAVA_HOME": str(broken)}, bundled=bundled)
    assert (found.home, found.is_bundled) == (bundled, True)


def test_usual_folder_goes_before_the_bundled_java(machine: Machine) -> None:
    machine.install("jvm/system", "17")
    found = machine.find(bundled=machine.install("bundled", "21"))
    assert (found.home.name, found.is_bundled) == ("system", False)


def test_java_home_without_java_falls_back(machine: Machine) -> None:
    machine.install("jvm/system", "17")
    assert machine.find({"JAVA_HOME": str(machine.root / "gone")}).home.name == "system"


def test_no_usable_java_names_what_was_refused(machine: Machine) -> None:
    newest = machine.install("jvm/newest", "25")
    with pytest.raises(JavaNotFound) as refusal:
        machine.find()
    assert f"{newest}/bin/java ({machine.root}/jvm) is Java 25" in str(refusal.value)
    assert "needs Java 17 or 21" in str(refusal.value)


def test_no_java_at_all_says_where_it_looked(machine: Machine) -> None:
    with pytest.raises(JavaNotFound, match="none was found in JAVA_HOME, on PATH"):
        machine.find()


@pytest.mark.parametrize(("modules", "has_it"), [("jdk.incubator.vector@17", True), ("java.base@17", False)])
def test_incubator_vector_is_told_from_the_module_list(machine: Machine, modules: str, *, has_it: bool) -> None:
    machine.install("jvm/system", "17", modules=modules)
    assert machine.find().has_incubator_vector is has_it


def test_incubator_vector_is_told_from_the_release_file(machine: Machine) -> None:
    home = machine.install("jvm/system", "17")
    (home / "release").write_text('MODULES="java.base jdk.incubator.vector"\n')
    assert machine.find().has_incubator_vector
