"""Values that contradict each other, or that no setting has, are refused by `helm template` with a sentence."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.values import GOOD, PIPELINE, merged
from tests.servers.helm import CHART, HelmFailed, helm


def rendered(folder: Path, change: dict[str, Any], *, base: dict[str, Any] = GOOD) -> str:
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump(merged(base, change)))
    return helm("template", "lw", CHART, "-f", values)


def test_the_good_values_render(tmp_path: Path) -> None:
    kinds = {each["kind"] for each in yaml.safe_load_all(rendered(tmp_path, {})) if each}
    assert {"Deployment", "Job", "Service", "PodDisruptionBudget", "ClusterRoleBinding"} <= kinds


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"secretRefs": None}, "there is no database"),
        ({"postgres": {"enabled": True}}, "database.url names another one"),
        ({"secretRefs": None, "postgres": {"enabled": True}}, "set migrations.mode to init"),
        ({"config": {"kubernetes": {"enabled": False}}}, "nobody could sign in"),
        ({"rbac": {"create": False}}, "needs a service account that may review tokens"),
        ({"config": {"authorization": {"backend": "openfga"}}}, "config.openfga.api_url is missing"),
        ({"config": {"secrets": {"backend": "vault"}}}, "config.secrets.vault.url is missing"),
        (
            {"server": {"autoscaling": {"enabled": True, "minReplicas": 9, "maxReplicas": 3}}},
            "minReplicas (9) is more than maxReplicas (3)",
        ),
        ({"config": {"server": {"processes": 8}}}, "processes is 8 and threads is 16"),
        ({"databaseConnections": 100}, "databaseConnections is 100, but 132 are needed during an upgrade"),
        ({"ingress": {"enabled": True}}, "at least one name in ingress.hosts"),
        ({"gateway": {"enabled": True}}, "at least one Gateway in gateway.parentRefs"),
        ({"config": {"storage": {"local_roots": ["/data"]}}}, "needs a volume that all pods share"),
        ({"metrics": {"enabled": False, "serviceMonitor": {"enabled": True}}}, "need metrics.enabled"),
        ({"metrics": {"port": 8181}}, "metrics.port and config.server.port are both 8181"),
        ({"pipeline": {"enabled": True}}, "pipeline.enabled needs config.pipeline.client_id"),
        ({"pipeline": {"enabled": True}, "config": {"pipeline": PIPELINE}}, "pipeline.enabled needs the secret"),
        (
            {"secretValues": {"database.url": "postgresql://a:b@c/d"}},
            "database.url is in secretRefs and in secretValues",
        ),
    ],
)
def test_a_contradiction_is_refused_with_a_sentence(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HelmFailed) as refused:
        rendered(tmp_path, change)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"replicas": 3}, "replicas"),
        ({"config": {"server": {"thread": 3}}}, "thread"),
        ({"config": {"server": {"threads": 0}}}, "threads"),
        ({"config": {"database": {"url": "postgresql://a:b@c/d"}}}, "url"),
        ({"secretRefs": {"database.urls": {"name": "db", "key": "url"}}}, "database.urls"),
        ({"server": {"replicas": 0}}, "replicas"),
        ({"image": {"digest": "latest"}}, "digest"),
    ],
)
def test_the_schema_names_what_is_wrong(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    with pytest.raises(HelmFailed, match=named):
        rendered(tmp_path, change)
