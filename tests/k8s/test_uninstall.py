"""What a trial with volumes leaves when it is uninstalled: its data, and what is needed to read them."""

from collections.abc import Callable

import pytest

from tests.k8s.images import POSTGRES
from tests.k8s.release import IMAGE, SMALL, TRIAL, WITHIN, Release, apply, volume
from tests.servers.kubernetes_node import until

pytestmark = pytest.mark.timeout(1800)


def test_data_stay_and_the_next_installation_finds_them(
    release: Callable[[str], Release], tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = release("kept")
    before = made.objects()
    claims = [f"data-{made.full_name}-postgres-0", f"{made.full_name}-warehouses"]
    for claim in claims:
        folder = tmp_path_factory.mktemp("volume")
        folder.chmod(0o777)
        apply(made, volume(f"kept-{claim}", folder, claim=claim, namespace=made.namespace))
    replicas = {"replicas": 1, "resources": SMALL}
    own = IMAGE | {"postgres": {"image": POSTGRES}, "server": replicas, "worker": replicas}

    made.install("-f", TRIAL, values=own)
    assert "is ready" in made.execute("lakewarden", "bootstrap", "--admin", "oidc~first")
    made.helm("uninstall", made.name, "--wait", "--timeout", WITHIN)
    kept = {f"persistentvolumeclaim/{each}" for each in claims} | {f"secret/{made.full_name}-postgres"}
    until(lambda: made.objects() - before == kept, "the end of everything else", made.node)

    made.install("-f", TRIAL, values=own)
    assert "already bootstrapped" in made.execute("lakewarden", "bootstrap", "--admin", "oidc~second")

    # as docs/how-to/kubernetes.md says
    made.helm("uninstall", made.name, "--wait", "--timeout", WITHIN)
    made.kubectl("delete", "pvc,secret", "-l", f"app.kubernetes.io/instance={made.name}")
    until(lambda: made.objects() == before, "the end of everything", made.node)
