"""One trace leads through everything that a request needs: OpenFGA, Vault, a token service, a verifier, the gateway's log.

All of them are real, and those that can go on with a trace are given it.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.contracts.openfga_decides import PATIENT
from tests.contracts.storage.s3_warehouse import sent
from tests.integration.catalog import verifier as verifiers
from tests.integration.catalog.verifier import Verifier
from tests.integration.ingest.messages import event
from tests.integration.tracing.spans import above, named
from tests.integration.tracing.stack import SCHEMA, Stack, stack
from tests.servers import openbao, openfga, sick_front
from tests.servers.issuer import run_issuer
from tests.servers.minio import MinioServer, minio
from tests.servers.openbao import FOLDER, MOUNT, PASSWORD
from tests.servers.otlp import Received
from tests.servers.sick_front import SickFront

__all__ = ["minio"]


@dataclass
class Lake:
    """A warehouse on S3 with the table `t`, and where requests to OpenFGA pass."""

    stack: Stack
    openfga: SickFront
    verifier: Verifier
    made: list[Received]
    warehouse: str

    @property
    def tables(self) -> str:
        return f"/catalog/v1/{self.warehouse}/namespaces/default/tables"


@pytest.fixture(scope="module")
def lake(minio: MinioServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    bucket = minio.new_bucket()
    with ExitStack() as parts:
        issuer = parts.enter_context(run_issuer(tmp_path_factory.mktemp("issuer") / "state"))
        bao = parts.enter_context(openbao.start())
        server = parts.enter_context(openfga.start(flags=PATIENT))
        front = parts.enter_context(sick_front.before(server.url.removeprefix("http://")))
        verifier = parts.enter_context(verifiers.running())
        settings = {
            "AUTHORIZATION__BACKEND": "openfga",
            "OPENFGA__API_URL": front.url,
            "OPENFGA__API_TOKEN": server.api_key,
            "OPENFGA__TIMEOUT_S": "20",
            "SECRETS__BACKEND": "vault",
            "SECRETS__VAULT__URL": bao.url,
            "SECRETS__VAULT__MOUNT": MOUNT,
            "SECRETS__VAULT__PATH": FOLDER,
            "SECRETS__VAULT__AUTH": "userpass",
            "SECRETS__VAULT__USERNAME": "svc",
            "SECRETS__VAULT__PASSWORD": PASSWORD,
            "CONTRACTS__VERIFIERS__GOV__URL": verifier.url,
            "CONTRACTS__VERIFIERS__GOV__SECRET": verifiers.SECRET,
            "CONTRACTS__VERIFIERS__GOV__ALLOW_PRIVATE_ADDRESSES": "true",
            "TRACING__SAMPLE_RATIO": "0",
        }
        running = parts.enter_context(stack(issuer, **settings))
        profile, credential = sent(minio, bucket, minio.new_owner(bucket), **{"sts-enabled": True})
        asked = {"warehouse-name": "lake", "storage-profile": profile, "storage-credential": credential}
        made = running.traced("POST", "/management/v1/warehouse", asked, status=201)
        (warehouse,) = running.ask("GET", "/management/v1/warehouse")["warehouses"]
        found = Lake(running, front, verifier, made, warehouse["id"])
        running.ask("POST", f"/catalog/v1/{found.warehouse}/namespaces", {"namespace": ["default"]})
        running.ask("POST", found.tables, {"name": "t", "schema": SCHEMA})
        yield found


def test_a_new_key_goes_to_vault(lake: Lake) -> None:
    assert above(lake.made, named(lake.made, "call Vault"))[-1] == "POST /management/v1/warehouse"


def test_a_load_leads_to_openfga_vault_and_the_token_service(lake: Lake) -> None:
    lake.stack.server.restart()  # nothing is known: neither decisions nor keys
    asked = len(lake.openfga.parents)
    loaded = lake.stack.traced("GET", f"{lake.tables}/t", headers={"X-Iceberg-Access-Delegation": "vended-credentials"})
    root = named(loaded, "GET /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}").name
    checked = named(loaded, "POST OpenFGA")
    assert above(loaded, checked)[-1] == root
    assert any(each.startswith("access ") for each in above(loaded, checked))
    assert goes_on(lake.openfga.parents[asked:], loaded, checked)
    assert above(loaded, named(loaded, "call Vault"))[-1] == root
    assert above(loaded, named(loaded, "ask token service"))[-2:] == ["store client_access", root]


def test_a_commit_leads_to_the_verifier(lake: Lake) -> None:
    table = lake.stack.ask("GET", f"{lake.tables}/t")["metadata"]["table-uuid"]
    contract = f"/management/v1/warehouse/{lake.warehouse}/table/{table}/contract"
    lake.stack.ask("PUT", contract, {"verifier": {"name": "gov"}})
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    committed = lake.stack.traced("POST", f"{lake.tables}/t", change)
    asked = named(committed, "POST verifier 'gov'")
    assert above(committed, asked)[-1] == "POST /catalog/v1/{prefix}/namespaces/{namespace}/tables/{table}"
    assert goes_on(lake.verifier.parents, committed, asked)
    assert above(committed, named(committed, "store write_new"))[-1] == above(committed, asked)[-1]


def test_a_batch_of_changes_leads_to_its_statement(lake: Lake) -> None:
    stored = lake.stack.traced("POST", "/lakehouse/cdc", {"events": [event(1, table="t")]})
    append = named(stored, "append change data")
    assert above(stored, append)[-1] == "POST /lakehouse/cdc"
    statements = [each for each in stored if "append change data" in above(stored, each) and _is_sql(each)]
    assert [each for each in statements if "batch" in above(stored, each)], [each.name for each in stored]


def goes_on(parents: Sequence[str], trace: Sequence[Received], span: Received) -> bool:
    """Whether another service was told of exactly this span."""
    assert span in trace
    return f"00-{span.trace}-{span.id}-01" in parents


def _is_sql(span: Received) -> bool:
    return "db.query.summary" in span.attributes
