"""The trial's release: restricted pods, `helm test`, metrics; upgrades and rollbacks under load; what is in the image."""

import json
from typing import Final

import pytest

from lakewarden import __version__
from lakewarden.cache_folder import cache_folder
from tests.k8s.images import LAKEWARDEN
from tests.k8s.lake import Lake
from tests.k8s.release import IMAGE, WITHIN, Release

pytestmark = pytest.mark.timeout(1800)
NEXT = "next"
READERS: Final = ("read", "read")
WRITERS: Final = ("write-1", "write-2")


def test_pods_are_ready_and_restricted(lw: Release) -> None:
    assert [len(lw.ready(each)) for each in ("server", "worker", "postgres")] == [2, 1, 1]
    assert all(lw.ready("server").values())
    said = lw.execute("sh", "-c", "id -u; grep CapEff /proc/1/status; touch /written 2>&1; true")
    assert said.splitlines()[0] == "65532"
    assert "0000000000000000" in said
    assert "Read-only file system" in said


def test_a_pod_of_the_cluster_signs_in_and_keeps_a_table(lw: Release) -> None:
    """`helm test`: its pod's token is reviewed by the API server; a changed one is refused."""
    for _ in range(2):
        said = lw.helm("test", lw.name, "--logs", "--timeout", WITHIN)
        assert "401 with a token that was changed" in said
        assert "200 with the token of this pod's service account" in said
        assert "200 commit" in said


def test_metrics_are_answered_in_the_cluster_only(lw: Release) -> None:
    for component, metric in (("server", "lakewarden_processes_ready 1.0"), ("worker", "lakewarden_workers 1.0")):
        address = lw.pods(component)[0]["status"]["podIP"]
        assert metric in lw.node.run("curl", "-sf", f"http://{address}:9191/metrics")
    assert "9191" not in lw.kubectl("get", "service", lw.full_name, "-o", "yaml")


def test_upgrade_and_rollback_lose_no_request(lw: Release, lake: Lake) -> None:
    """To another image and other settings, and back, while engines read and commit."""
    lw.node.run("ctr", "-a", lw.node.socket, "-n", "k8s.io", "images", "tag", "--force", LAKEWARDEN, _tag(NEXT))
    for table in ("read", "write-1", "write-2"):
        lake.make_table(table)
    revision = lw.revision
    before = set(lw.ready())
    with lake.load(readers=READERS, writers=WRITERS) as upgrade:
        lw.upgrade("--reset-then-reuse-values", "--set", f"image.tag={NEXT}", "--set", "config.log.level=DEBUG")
    upgraded = set(lw.ready())
    with lake.load(readers=READERS, writers=WRITERS) as rollback:
        lw.helm("rollback", lw.name, revision, "--wait", "--timeout", WITHIN)
    after = set(lw.ready())
    assert not before & upgraded
    assert not upgraded & after
    assert {each["spec"]["containers"][0]["image"] for each in lw.pods()} == {_tag(__version__)}
    for name, told in (("upgrade", upgrade), ("rollback", rollback)):
        print(f"{name}: {told}")  # noqa: T201 a figure
        assert told.failures == []
        assert told.reads > 100
        assert told.commits > 50
    for table, number in rollback.last.items():
        _, answer = lw.ask("GET", f"{lake.tables}/{table}", token=lake.token)
        assert answer["metadata"]["properties"]["number"] == str(number)


def test_the_image_holds_what_its_list_says(lw: Release) -> None:
    """The SBOM beside the image has each of its Python packages, in the same version; no compiler is there."""
    names = "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()), sep='\\n')"
    installed = {_plain(each) for each in lw.execute("python", "-c", names).split()}
    components = json.loads((cache_folder() / "images" / "lakewarden.cdx.json").read_text())["components"]
    listed = {_plain(f"{each['name']}=={each['version']}") for each in components}
    assert installed - listed == {_plain(f"lakewarden=={__version__}")}
    assert len(installed) > 50
    found = lw.execute("sh", "-c", "for each in gcc pip uv curl java apt-get; do command -v $each; done; true").split()
    assert found == ["/usr/bin/apt-get"]  # the base's own
    debian, files = lw.execute("sh", "-c", "dpkg-query -W | wc -l; du -smx / | cut -f1").split()
    image = f"{files} MiB, {debian} packages of Debian, {len(installed)} of Python"
    print(f"image: {image}; the list has {len(listed)}")  # noqa: T201 a figure


def _plain(requirement: str) -> str:
    return requirement.lower().replace("_", "-").replace(".", "-")


def _tag(tag: str) -> str:
    return f"{IMAGE['image']['repository']}:{tag}"
