"""docker/compose.yaml on a real Docker engine, as the guide starts it."""

import json

import pytest
from playwright.sync_api import expect

from tests.compose.guide import Guide
from tests.servers import chromium
from tests.servers.docker_engine import Engine

COMPOSE = "docker compose -f docker/compose.yaml"
READ_ORDERS = (
    'curl -sS --fail-with-body "$LAKE/catalog/v1/$WAREHOUSE/namespaces/shop/tables/orders" '
    '-H "Authorization: Bearer $(token)" -H "X-Iceberg-Access-Delegation: vended-credentials"'
)
pytestmark = pytest.mark.timeout(1800)


def test_everything_is_well_and_doctor_finds_no_failure(guide: Guide, started: str) -> None:
    listed = [json.loads(line) for line in guide.run(f"{COMPOSE} ps --format json").splitlines() if line]
    health = {each["Service"]: each["Health"] for each in listed}
    assert set(health) == {"server", "worker", "postgres", "keycloak", "openfga", "openbao", "kafka", "minio"}
    assert set(health.values()) == {"healthy"}
    assert "its store 'lakewarden' has the current model" in started


def test_a_person_signs_in_to_the_console_and_sees_the_warehouse(engine: Engine, furnished: Guide) -> None:
    with chromium.start(enter=engine.enter) as browser:
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto("http://localhost:8181/console")
        page.get_by_role("link", name="Sign in").click()
        page.locator("input[name=username]").fill("lake")
        page.locator("input[name=password]").fill("lake")
        page.locator("input[name=password]").press("Enter")
        page.wait_for_url("http://localhost:8181/console/warehouses")
        expect(page.get_by_text("s3://lake/first")).to_be_visible()


def test_rows_reach_a_table_in_the_bucket(filled: Guide) -> None:
    table = json.loads(filled.run('call GET "catalog/v1/$WAREHOUSE/namespaces/shop/tables/orders"'))
    assert table["metadata-location"].startswith("s3://lake/first/")


def test_changes_are_events_in_kafka(filled: Guide) -> None:
    told = [json.loads(line) for line in filled.follow("events").splitlines() if line.startswith("{")]
    assert [each["type"] for each in told] == ["createUser", "bootstrapServer", "createUser"]


def test_a_part_that_is_restarted_has_what_it_had(filled: Guide) -> None:
    """OpenFGA and OpenBao would have had it in memory."""
    filled.run(f"{COMPOSE} restart openfga openbao server")
    filled.run(f"{COMPOSE} up --detach --wait")
    assert vended(filled)


def test_down_and_up_keep_people_rights_secrets_tables_and_events(filled: Guide) -> None:
    who = "call GET management/v1/whoami | jq -r .id"
    before = filled.run(who), filled.follow("events")
    filled.follow("stop")
    assert filled.run(f"{COMPOSE} --profile pipeline ps --all --quiet").strip() == ""
    filled.follow("start")
    assert (filled.run(who), filled.follow("events")) == before
    assert vended(filled)
    filled.follow("pipeline")
    filled.follow("rows")
    filled.run('until [ "$(orders)" -ge 4 ] 2>/dev/null; do sleep 5; done')


def vended(guide: Guide) -> bool:
    """Whether an engine gets keys to the table: rights, the warehouse's secret and MinIO have part in it."""
    table = json.loads(guide.run(READ_ORDERS))
    assert table["metadata"]["current-snapshot-id"] > 0
    return "s3.session-token" in table["config"]
