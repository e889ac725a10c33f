"""What is missing, too small or full: pods say so in a sentence, are not ready, and go on by themselves when it is mended.

The release that runs goes on: a new pod that waits replaces none.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.k8s.lake import Databases, Lake
from tests.k8s.release import OWN, SMALL, WITHIN, Release, secret
from tests.servers.kubernetes_node import until

pytestmark = pytest.mark.timeout(1800)
Make = Callable[[str], Release]


def test_a_missing_secret_is_named(release: Make) -> None:
    """Also a key that a Secret does not have; the pod starts when both are there."""
    made = release("missing")
    refs = {"secretRefs": {"database.url": {"name": "nowhere", "key": "url"}}}
    made.install(values=OWN | refs | {"migrations": {"mode": "init", "resources": SMALL}}, wait=False)
    until(lambda: 'secret "nowhere" not found' in _waiting(made), "the name of the Secret", made.node)
    url = made.kubectl("get", "secret", "database", "-o", "jsonpath={.data.url}")
    secret(made, "nowhere", another="value")
    until(lambda: "couldn't find key url in Secret" in _waiting(made), "the name of the key", made.node)
    assert not any(made.ready().values())
    made.kubectl("patch", "secret", "nowhere", "-p", f'{{"data": {{"url": "{url}"}}}}')
    made.roll_out()


def test_pods_wait_for_migrations_and_uninstall_leaves_nothing(release: Make) -> None:
    made = release("unmigrated")
    before = made.objects()
    made.install("--set", "migrations.mode=none", values=OWN, wait=False)
    made.until_said("The database is not migrated", container="database")
    assert "run `lakewarden migrate` first" in made.log(made.pods()[0]["metadata"]["name"], "database")
    assert not any(made.ready().values())

    made.upgrade("--set", "migrations.mode=job", values=OWN)
    assert all(made.ready().values())
    assert made.ask("GET", "/health/ready")[0] == 200
    said = made.helm("test", made.name, "--logs", "--timeout", WITHIN)
    assert "with the token of this pod's service account" in said

    made.helm("uninstall", made.name, "--wait", "--timeout", WITHIN)
    # what `helm test` ran stays until its next run, so that its log can be read
    ran = {f"pod/{made.full_name}-test", f"configmap/{made.full_name}-test"}
    until(lambda: made.objects() - before == ran, "the end of all objects", made.node)
    bindings = made.kubectl("get", "clusterrolebindings", "-l", f"app.kubernetes.io/instance={made.name}", "-o", "name")
    assert bindings == ""


def test_fewer_sessions_than_the_replicas_need(release: Make, databases: Databases) -> None:
    made = release("few")
    databases.run("alter role few connection limit 6")
    own = ("--set", "migrations.mode=init")
    made.install(*own, values=OWN)
    (first,) = made.ready()
    said = "PostgreSQL allows 6 sessions here (the limit of 'few'), and 16 may be needed: lower "
    assert said in made.log(first)

    databases.run("alter role few connection limit 1")
    made.upgrade(*own, "--set", "server.replicas=2", values=OWN, wait=False)
    waits = made.until_said('too many connections for role "few"', container="database")
    assert made.ready() == {first: True, waits: False}
    assert made.ask("GET", "/health/ready")[0] == 200
    databases.run("alter role few connection limit -1")
    made.roll_out()


def test_a_full_volume_refuses_writes_and_nothing_else(lw: Release, lake: Lake, disk: Path) -> None:
    lake.make_table("full")
    assert lake.commit("full", before="1") == (200, "")
    with _filled(disk):
        status, message = lake.commit("full", during="1")
        assert status == 503
        assert "No space left to write" in message
        assert "nothing was changed" in message
        assert lw.ask("GET", f"{lake.tables}/full", token=lake.token)[0] == 200
        addresses = [f"{each['status']['podIP']}:8181" for each in lw.pods()]
        found = [lw.ask("GET", "/health/ready", address=each) for each in addresses]
        assert [status for status, _ in found] == [200, 200]
        assert "none left" in [said.get("space") for _, said in found]
        lw.until_said("No space left to write")
    assert lake.commit("full", after="1") == (200, "")
    _, answer = lw.ask("GET", f"{lake.tables}/full", token=lake.token)
    assert set(answer["metadata"]["properties"]) >= {"before", "after"}
    assert "during" not in answer["metadata"]["properties"]


def test_a_database_of_a_newer_release_keeps_pods_of_this_one_from_starting(
    release: Make, databases: Databases
) -> None:
    """As after `helm rollback` over a migration: pods that run go on, whatever a newer release has migrated."""
    made, own = release("newer"), ("--set", "migrations.mode=init")
    made.install(*own, values=OWN)
    (first,) = made.ready()
    newer = "insert into django_migrations (app, name, applied) values ('catalog', '9999_later', now())"
    databases.run(newer, database="newer")
    made.upgrade("--set", "migrations.mode=none", "--set", "server.podAnnotations.of=before", values=OWN, wait=False)
    waits = made.until_said("The database is newer than this version of Lakewarden", container="database")
    assert "it has catalog.9999_later" in made.log(waits, "database")
    assert made.ready() == {first: True, waits: False}
    token = made.token(
        f"{made.full_name}-test"
    )  # accepted: nobody is an administrator yet, but 401 and 503 are not said
    assert made.ask("GET", "/management/v1/whoami", token=token)[0] in {200, 403, 404}
    databases.run("delete from django_migrations where name = '9999_later'", database="newer")
    made.roll_out()


@contextmanager
def _filled(disk: Path) -> Iterator[None]:
    filler = disk / "filler"
    try:
        with pytest.raises(OSError, match="No space left"):
            _write_on(filler)
        yield
    finally:
        filler.unlink()


def _write_on(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def _waiting(release: Release) -> str:
    """What the kubelet says of containers that it cannot start."""
    states = [each["state"] for pod in release.pods() for each in pod["status"].get("initContainerStatuses", [])]
    return " ".join(each["waiting"].get("message", "") for each in states if "waiting" in each)
