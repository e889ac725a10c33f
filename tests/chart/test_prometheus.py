"""A real Prometheus: it scrapes servers and workers, answers the dashboard's queries, and each alert fires when it should.

Nothing of an alert's condition is repeated here but the series by which it fires, and by which it does not.
"""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from lakewarden.config import PREFIX
from standalone.commands import lakewarden_command
from standalone.ports import HOST, free_port
from standalone.process import ManagedProcess
from tests.servers import debian
from tests.servers.helm import CHART
from tests.servers.lakewarden_serve import LakewardenServer, prepared

ALERTS = CHART / "files" / "alerts.yaml"
DASHBOARD = json.loads((CHART / "files" / "dashboard.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
PATIENCE_S = 120.0
SECONDS = "lakewarden_http_request_duration_seconds"
READ = 'route="GET /catalog/v1/{prefix}/namespaces"'
DISK = 'instance="a",folder="/warehouses"'
PIPELINE = 'project="p",warehouse="w"'

# series by name, as promtool writes their values: half a minute apart, for 35 minutes
FIRES: dict[str, dict[str, str]] = {
    "LakewardenDown": {"lakewarden_processes_ready": "0x70"},
    "LakewardenErrors": {
        f'{SECONDS}_count{{status="200"}}': "0+90x70",
        f'{SECONDS}_count{{status="503"}}': "0+10x70",
    },
    "LakewardenSlow": {
        f'{SECONDS}_bucket{{{READ},le="1"}}': "0+1x70",
        f'{SECONDS}_bucket{{{READ},le="2.5"}}': "0+90x70",
        f'{SECONDS}_bucket{{{READ},le="+Inf"}}': "0+90x70",
        f"{SECONDS}_count{{{READ}}}": "0+90x70",
    },
    "LakewardenThreadsExhausted": {'lakewarden_requests_waiting{instance="a"}': "30x70"},
    "LakewardenProcessesRestart": {"lakewarden_processes": "2x70", "lakewarden_processes_ready": "1x70"},
    "LakewardenDiskNearlyFull": {
        f"lakewarden_disk_{each}_bytes{{{DISK}}}": f"{n}x70" for each, n in (("free", 9), ("size", 100))
    },
    "LakewardenDatabaseUnreachable": {"lakewarden_database_up": "0x70"},
    "LakewardenNoWorker": {"lakewarden_workers": "0x70"},
    "LakewardenTasksLate": {'lakewarden_task_oldest_seconds{queue="purge"}': "3600x70"},
    "LakewardenTasksFailed": {'lakewarden_tasks{queue="purge",state="failed"}': "1x70"},
    "LakewardenEventsUndelivered": {'lakewarden_event_sink_oldest_seconds{sink="a"}': "900x70"},
    "LakewardenDeadLetters": {'lakewarden_event_sink_dead_letters{sink="a"}': "1x70"},
    "LakewardenPipelineSilent": {
        f"lakewarden_ingest_pipeline_silent_seconds{{{PIPELINE}}}": "900x70",
        f"lakewarden_ingest_waiting_events{{{PIPELINE}}}": "10x70",
    },
}
QUIET: dict[str, dict[str, str]] = {
    "LakewardenDown": {"lakewarden_processes_ready": "0x2 1x70"},
    "LakewardenErrors": {
        f'{SECONDS}_count{{status="200"}}': "0+99x70",
        f'{SECONDS}_count{{status="503"}}': "0+1x70",
    },
    "LakewardenSlow": {
        f'{SECONDS}_bucket{{{READ},le="0.5"}}': "0+90x70",
        f'{SECONDS}_bucket{{{READ},le="+Inf"}}': "0+90x70",
        f"{SECONDS}_count{{{READ}}}": "0+90x70",
    },
    "LakewardenThreadsExhausted": {'lakewarden_requests_waiting{instance="a"}': "20x70"},
    "LakewardenProcessesRestart": {"lakewarden_processes": "2x70", "lakewarden_processes_ready": "1x5 2x70"},
    "LakewardenDiskNearlyFull": {
        f"lakewarden_disk_{each}_bytes{{{DISK}}}": f"{n}x70" for each, n in (("free", 11), ("size", 100))
    },
    "LakewardenDatabaseUnreachable": {
        'lakewarden_database_up{instance="a"}': "0x70",
        'lakewarden_database_up{instance="b"}': "1x70",
    },
    "LakewardenNoWorker": {"lakewarden_workers": "1x70"},
    "LakewardenTasksLate": {'lakewarden_task_oldest_seconds{queue="purge"}': "1700x70"},
    "LakewardenTasksFailed": {'lakewarden_tasks{queue="purge",state="failed"}': "0x70"},
    "LakewardenEventsUndelivered": {'lakewarden_event_sink_oldest_seconds{sink="a"}': "590x70"},
    "LakewardenDeadLetters": {'lakewarden_event_sink_dead_letters{sink="a"}': "0x70"},
    "LakewardenPipelineSilent": {
        f"lakewarden_ingest_pipeline_silent_seconds{{{PIPELINE}}}": "900x70",
        f"lakewarden_ingest_waiting_events{{{PIPELINE}}}": "0x70",
    },
}


def promtool(*arguments: str | Path) -> str:
    command = [debian.program("promtool", package="prometheus"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_accepts_the_rules() -> None:
    assert f"SUCCESS: {len(FIRES)} rules found" in promtool("check", "rules", ALERTS)


def test_each_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    alerts = [rule["alert"] for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]]
    assert alerts == list(FIRES) == list(QUIET)
    cases = [_case(name, FIRES[name], fires=True) for name in alerts]
    cases += [_case(name, QUIET[name], fires=False) for name in alerts]
    cases += [_case("LakewardenDown", {}, fires=True), _case("LakewardenNoWorker", {}, fires=True)]  # nobody answers
    file = tmp_path / "alerts.test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "evaluation_interval": "30s", "tests": cases}))
    assert "SUCCESS" in promtool("test", "rules", file)


def _case(alert: str, series: Mapping[str, str], *, fires: bool) -> dict[str, Any]:
    return {
        "name": f"{alert} {'fires' if fires else 'is quiet'}",
        "interval": "30s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})',
                "eval_time": "34m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }


@pytest.fixture
def served() -> Iterator[LakewardenServer]:
    """A server of two processes and a worker, both measured."""
    ports = {f"{PREFIX}METRICS__PORT": str(free_port()), f"{PREFIX}METRICS__WORKER_PORT": str(free_port())}
    own = {
        f"{PREFIX}OPENID__OIDC__ISSUER": "http://127.0.0.1:9/realms/none",
        f"{PREFIX}SERVER__PROCESSES": "2",
        f"{PREFIX}SERVER__THREADS": "8",
        f"{PREFIX}EVENTS__SINKS__OWN__LOG__ENABLED": "true",
    }
    with prepared(own | ports) as server:
        server.start()
        worker = ManagedProcess(
            "lakewarden work",
            lakewarden_command("work"),
            log=server.log.with_name("work.log"),
            environment=server._environment(),
            directory=Path("/"),
            grace_s=30.0,
        )
        with worker:
            yield server


def test_prometheus_scrapes_servers_and_workers(served: LakewardenServer, tmp_path: Path) -> None:
    targets = [f"{HOST}:{served.settings[f'{PREFIX}METRICS__{name}']}" for name in ("PORT", "WORKER_PORT")]
    asked = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [{"job_name": "lakewarden", "static_configs": [{"targets": targets}]}],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(asked))
    port = free_port()
    command = [
        debian.program("prometheus", package="prometheus"),
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address={HOST}:{port}",
    ]
    with ManagedProcess("prometheus", command, log=tmp_path / "prometheus.log") as process:
        api = f"http://{HOST}:{port}/api/v1"
        _eventually(lambda: len(_found(api, "up == 1")) == len(targets), process)
        _eventually(lambda: bool(_found(api, "lakewarden_workers > 0")), process)
        answered = f'{SECONDS}_count{{route="GET /catalog/v1/config",status="401"}}'

        def has_rate() -> bool:  # which needs requests between two scrapes
            assert requests.get(f"{served.catalog_uri}/v1/config", timeout=30).status_code == 401
            return bool(_found(api, f"sum(rate({answered}[1m])) > 0"))

        _eventually(has_rate, process)
        empty = {each for each in EXPRESSIONS if not _found(api, each.replace("$__rate_interval", "1m"))}
        # what nobody has asked of this server: it has no error, no write, no task that waits, no change data
        assert {each for each in empty if not re.search(r"5\.\.|POST|_ingest_|_tasks?\b|_task_", each)} == set()
        rules = requests.get(f"{api}/rules", timeout=30).json()["data"]["groups"][0]["rules"]
        assert {rule["health"] for rule in rules} == {"ok"}
        firing = {rule["name"] for rule in rules if rule["state"] == "firing"}
        assert firing == set(), firing


def _found(api: str, query: str) -> list[Any]:
    try:
        answer = requests.get(f"{api}/query", params={"query": query}, timeout=30).json()
    except requests.ConnectionError:
        return []
    assert answer["status"] == "success", answer
    found: list[Any] = answer["data"]["result"]
    return found


def _eventually(holds: Callable[[], bool], process: ManagedProcess) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, process.log_text()
        assert not process.exited, process.log_text()
        time.sleep(0.2)
