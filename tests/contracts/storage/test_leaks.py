"""No secret comes to light, whatever fails: not in logs, answers, errors, tasks, events, the audit, or the database.

Stores, token services and Vault fail in each way in the middle of each action, and say all secrets in their answers.
"""

import base64
import json
import logging
import os
import subprocess
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from lakewarden import backends, config
from lakewarden.config.secrets import new_key
from lakewarden.storage.adls.profile import AdlsProfile
from lakewarden.storage.client_access import AccessLevel, AccessRequest, ClientRoutes
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.gcs.profile import GcsProfile
from lakewarden.storage.interface import Storage, StorageError
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.token_services import token_service
from standalone.commands import lakewarden_command
from standalone.s3.programs import Keys
from tenants.models import Warehouse
from tests.contracts.secrets.vaults import Vault
from tests.contracts.storage.marks import SIGNATURES, Marks
from tests.contracts.storage.s3_warehouse import moved_to
from tests.contracts.storage.served_leaks import dump
from tests.installation import admin, admin_context, client, warehouse
from tests.integration.catalog.lake import Lake, identifier, set_properties
from tests.integration.catalog.registering import register
from tests.integration.catalog.signed import Signing
from tests.integration.tasks.purges import run, sql
from tests.servers import cloud_stub, openbao, sick_store
from tests.servers.asgi_client import Answer, AsgiClient
from tests.servers.cloud_stub import CloudStub
from tests.servers.openbao import FOLDER, MOUNT, PASSWORD, OpenBao
from tests.servers.s3_server import REGION
from tests.servers.sick_store import Illness
from tests.service_accounts import service_account

__all__ = ["admin", "admin_context", "client", "warehouse"]

MARKED = {
    "secret key": 'Leak/s3+"first"==',
    "new secret key": "Leak/s3+second==",
    "external id": "Leak/external-id",
    "issued secret": "Leak/issued+secret==",
    "issued token": "Leak/issued+session+token==",
    "azure key": base64.b64encode(b"Leak: the key of an account").decode(),
    "azure secret": "Leak~client~secret",
    "azure token": "Leak.azure.token.0123456789",
    "google token": "Leak.google.token.0123456789",
    "google key": service_account()["key"]["private_key"].splitlines()[5],
    "password of vault": PASSWORD,
}
ECHO = " ".join(["AWS4-HMAC-SHA256", *MARKED.values()]).replace("&", "")
ILLNESSES = {
    "wrong key": Illness(403, "InvalidAccessKeyId", message=ECHO),
    "wrong secret": Illness(403, "SignatureDoesNotMatch", message=ECHO),
    "wrong region": Illness(400, "AuthorizationHeaderMalformed", message=f"expecting 'eu-x-1' {ECHO}"),
    "no bucket": Illness(404, "NoSuchBucket", message=ECHO),
    "clock": Illness(403, "RequestTimeTooSkewed", message=ECHO),
    "denied": Illness(403, "AccessDenied", message=ECHO),
    "missing": Illness(404, "NoSuchKey", message=ECHO),
    "too many": Illness(429, "TooManyRequests", message=ECHO),
    "busy": Illness(503, "SlowDown", message=ECHO),
    "odd": Illness(418, MARKED["secret key"], message=ECHO),
    "hangs": Illness(hangs=True),
    "resets": Illness(resets=True),
}
QUICK = {"RETRIES": "0", "REQUEST_TIMEOUT_S": "0.3", "FAILURES_BEFORE_PAUSE": "1000", "TOKEN_TIMEOUT_S": "0.3"}
WAREHOUSES = "/management/v1/warehouse"


@dataclass
class Recorded(AsgiClient):
    """Notes each answer, except for those that hold what was issued for their caller."""

    marks: Marks = field(default_factory=lambda: Marks({}))

    def call(self, method: str, path: str, **options: Any) -> Answer:
        answer = super().call(method, path, **options)
        text = f"{answer.status} {answer.headers} {answer.body.decode(errors='replace')}"
        if answer.status >= 300 or not ("storage-credentials" in text or path.endswith("/sign")):
            self.marks.note(f"the answer to {method} {path}", text)
        return answer


@pytest.fixture(scope="module")
def bao() -> Iterator[OpenBao]:
    with openbao.start() as server:
        yield server


@pytest.fixture
def marks(
    database: None, bao: OpenBao, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Marks]:
    """Everything that was seen is searched at the end, and a dump of the database, and what commands print."""
    found = Marks(dict(MARKED) | {"root of vault": bao.root, "key ring": new_key("leak").partition(":")[2]})
    settings = {f"STORAGE__{name}": value for name, value in QUICK.items()} | {
        "SECRETS__KEYS": f"leak:{found.values['key ring']}",
        "SECRETS__VAULT__URL": bao.url,
        "SECRETS__VAULT__MOUNT": MOUNT,
        "SECRETS__VAULT__PATH": FOLDER,
        "SECRETS__VAULT__AUTH": "userpass",
        "SECRETS__VAULT__USERNAME": "svc",
        "SECRETS__VAULT__PASSWORD": PASSWORD,
        "SECRETS__VAULT__TIMEOUT_S": "2",
    }
    for name, value in settings.items():
        monkeypatch.setenv(config.PREFIX + name, value)
    forget()
    caplog.set_level(logging.DEBUG)
    yield found
    for record in caplog.records:
        found.note(f"the log of {record.name}", logging.Formatter("%(message)s").format(record))
    for words in (["doctor", "--json"], ["secrets", "check"]):
        found.note(f"`{' '.join(words)}`", _printed(words))
    found.note("the database", dump(os.environ["LAKEWARDEN__DATABASE__URL"]))
    monkeypatch.undo()
    forget()
    assert found.leaks() == []
    assert [text for where, text in found.seen if "log" in where and SIGNATURES.search(text)] == []


def forget() -> None:
    config.current.cache_clear()
    token_service.cache_clear()
    for each in ("_breaker", "_opened", "_signers", "secrets_in_database", "_secrets_in_vault"):
        getattr(backends, each).cache_clear()


def _printed(words: list[str]) -> str:
    environment = os.environ | {"LAKEWARDEN__LOG__LEVEL": "DEBUG"}
    done = subprocess.run(
        lakewarden_command(*words), env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout, done.stderr
    return done.stdout + done.stderr


def lake_on(marks: Marks, admin: AsgiClient, warehouse: Warehouse, endpoint: str, **fields: Any) -> Lake:
    server: Any = SimpleNamespace(endpoint=endpoint)
    keys = Keys("AKIDLAKE", MARKED["secret key"])
    moved = moved_to(server, warehouse, "lake-leaks", keys, **fields)
    found = Lake(Recorded(admin.headers, marks), str(moved.id))
    assert found.create_namespace("sales").status == 200
    return found


def credential(secret: str) -> dict[str, str]:
    return {
        "type": "s3",
        "credential-type": "access-key",
        "access-key-id": "AKIDLAKE",
        "secret-access-key": secret,
        "external-id": MARKED["external id"],
    }


def manage(lake: Lake) -> list[Answer]:
    """Creation, validation and new credentials of warehouses, none of which can succeed."""
    one = f"{WAREHOUSES}/{lake.warehouse_id}"
    profile = {**lake.client.get(one).json()["storage-profile"], "bucket": "lake-other"}
    created = {"warehouse-name": "other", "storage-profile": profile, "delete-profile": {"type": "hard"}}
    secrets = {"storage-credential": credential(MARKED["new secret key"])}
    post = lake.client.post
    return [
        post(WAREHOUSES, created | secrets),
        post("/management/v1/warehouse-creation-validation", created | secrets),
        post(f"{one}/storage-credential", {"new-storage-credential": credential(MARKED["new secret key"])}),
        post(f"{one}/storage/validate-access", {}),
        post(f"{one}/storage", {"storage-profile": profile} | secrets),
        post(f"{one}/storage", {"storage-profile": {**profile, "secret-access-key": MARKED["new secret key"]}}),
    ]


def use(lake: Lake) -> list[Answer]:
    """Every action of an engine that reaches the store, a token service or a secret."""
    changes = [
        {"identifier": identifier(name), "requirements": [], "updates": [set_properties(color="red")]} for name in "ab"
    ]
    client, sign = lake.client, Signing.by_name(lake, "a")
    return [
        lake.create_table("new"),
        lake.create_table("staged", stage_create=True),
        lake.create_generic("plain"),
        lake.commit("a", set_properties(color="red")),
        client.post(lake.path("transactions", "commit"), {"table-changes": changes}),
        lake.create_view("seen"),
        register(lake, "again", "s3://lake-leaks/lake/elsewhere/metadata/v1.metadata.json"),
        client.get(lake.table("a")),
        client.get(lake.table("a", "credentials")),
        sign.ask("PUT", "http://elsewhere.test/lake-leaks/f", authorization=MARKED["issued token"]),
        sign.ask("GET", f"http://elsewhere.test/lake-leaks/f?X-Amz-Signature={'a1' * 32}"),
    ]


def purge(marks: Marks, lake: Lake, name: str) -> None:
    """What it raises is noted as a log would show it."""
    answer = lake.client.delete(lake.table(name, purgeRequested="true"))
    if answer.status == 204:
        for (task,) in sql("select id from task where outcome is null and queue_name = 'tabular_purge'"):
            noted(marks, partial(run, task), "a purge")
    shown = lake.client.post(f"{WAREHOUSES}/{lake.warehouse_id}/task/list", {}).json()["tasks"]
    for task in shown[:3]:
        lake.client.get(f"{WAREHOUSES}/{lake.warehouse_id}/task/by-id/{task['task-id']}")


def noted(marks: Marks, action: Callable[[], object], what: str) -> None:
    try:
        action()
    except StorageError as error:
        marks.note(what, "".join(traceback.format_exception(error)) + repr(error))


@pytest.mark.timeout(600)
def test_a_store_that_fails_in_any_way_brings_no_secret_to_light(
    marks: Marks, admin: AsgiClient, warehouse: Warehouse
) -> None:
    with sick_store.start() as sick:
        lake = lake_on(marks, admin, warehouse, sick.url)
        for name in ("a", "b"):
            assert lake.create_table(name).status == 200
        for number, (name, illness) in enumerate(ILLNESSES.items()):
            assert lake.create_table(f"t{number}").status == 200
            sick.chronic = illness
            failed = [*manage(lake), *use(lake)]
            assert sum(each.status >= 400 for each in failed) > 8, (name, [each.status for each in failed])
            purge(marks, lake, f"t{number}")
            sick.chronic = None
    for document in ("/catalog/v1/openapi.json", "/management/v1/openapi.json"):
        lake.client.get(document)


STS = """<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>ASIAISSUED</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken>
{end}</Credentials></AssumeRoleResult></AssumeRoleResponse>"""
ISSUED = {"secret": MARKED["issued secret"], "token": MARKED["issued token"]}
REFUSED = "<ErrorResponse><Error><Code>{code}</Code><Message>{echo}</Message></Error></ErrorResponse>"


def issuing() -> cloud_stub.Answer:
    return cloud_stub.Answer(STS.format(**ISSUED, end="<Expiration>2036-01-01T00:00:00Z</Expiration>"))


def sts_answers() -> dict[str, cloud_stub.Answer]:
    codes = {"AccessDenied": 403, "InvalidClientTokenId": 403, "SignatureDoesNotMatch": 403, "Throttling": 429}
    codes |= {"InternalFailure": 500, "ServiceUnavailable": 503, "ValidationError": 400, "RequestExpired": 400}
    found = {code: cloud_stub.Answer(REFUSED.format(code=code, echo=ECHO), status) for code, status in codes.items()}
    found["without an end"] = cloud_stub.Answer(STS.format(**ISSUED, end=""))
    found["torn"] = cloud_stub.Answer(STS.format(**ISSUED, end="")[:260])
    found["no date"] = cloud_stub.Answer(STS.format(**ISSUED, end=f"<Expiration>{ECHO}</Expiration>"))
    found["not XML"] = cloud_stub.Answer(ECHO)
    return found


@pytest.mark.timeout(600)
def test_a_token_service_that_fails_in_any_way_brings_no_secret_to_light(
    marks: Marks, admin: AsgiClient, warehouse: Warehouse
) -> None:
    with sick_store.start() as store, cloud_stub.start() as sts:
        sts.answer("/", issuing())
        fields = {"sts-enabled": True, "sts-endpoint": sts.url, "remote-signing-enabled": False}
        lake = lake_on(marks, admin, warehouse, store.url, **fields)
        for name in ("a", "b"):
            assert lake.create_table(name).status == 200
        held = json.dumps(lake.load("a"))
        assert MARKED["issued token"] in held  # so the marks are what engines receive
        for number, (name, answer) in enumerate(sts_answers().items()):
            sts.answer("/", answer)
            refused = lake.create_table(f"new{number}")
            assert refused.status == 503, (name, refused.body)
            assert "was not created" in refused.message()
            use(lake)
        sts.answer("/", issuing())
        assert lake.create_table("after").status == 200


@pytest.mark.timeout(600)
def test_a_vault_that_fails_in_any_way_brings_no_secret_to_light(
    marks: Marks, admin: AsgiClient, warehouse: Warehouse, bao: OpenBao, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{config.PREFIX}SECRETS__BACKEND", "vault")
    forget()
    with sick_store.start() as store:
        lake = lake_on(marks, admin, warehouse, store.url, **{"remote-signing-enabled": True})
        for name in ("a", "b"):
            assert lake.create_table(name).status == 200

        def fails(words: str) -> None:
            forget()  # as a server that was started again
            answers = [*use(lake), *manage(lake)]
            assert any(each.status == 503 and words in each.body.decode() for each in answers), words

        def works() -> None:
            assert lake.commit("a", set_properties(color="blue")).status == 200
            file = lake.load("a")["metadata-location"].removeprefix("s3:/")
            assert (
                replace(Signing.by_name(lake, "a"), asked={"region": REGION}).ask("GET", store.url + file).status == 200
            )

        bao.seal()
        try:
            fails("sealed")
        finally:
            bao.unseal()
        works()
        policy = bao.call("GET", f"sys/policies/acl/{FOLDER}")["data"]["policy"]
        bao.call("PUT", f"sys/policies/acl/{FOLDER}", {"policy": 'path "nothing" { capabilities = ["read"] }'})
        try:
            fails("Vault denies access")
        finally:
            bao.call("PUT", f"sys/policies/acl/{FOLDER}", {"policy": policy})
        works()
        marks.values["token of vault"] = Vault(bao).store()._session._client.token or bao.root
        forget()
        purge(marks, lake, "a")


def clouds(cloud: CloudStub) -> Iterator[tuple[StorageProfile, StorageCredential | None, Mapping[str, Any]]]:
    azure = config.AzureConfig(blob_endpoint=f"{cloud.url}/{{account}}", authorities=(cloud.url,))
    fields = {"type": "adls", "account-name": "lakehouse", "filesystem": "data", "authority-host": cloud.url}
    adls = AdlsProfile.model_validate(fields)
    google = config.GcsConfig(
        endpoint=cloud.url, token_endpoint=f"{cloud.url}/token", exchange_endpoint=f"{cloud.url}/exchange"
    )
    gcs = GcsProfile.model_validate({"type": "gcs", "bucket": "lake"})
    of_application = {"client-id": "app", "tenant-id": "tenant", "client-secret": MARKED["azure secret"]}
    for profile, given, settings in (
        (adls, {"credential-type": "shared-access-key", "key": MARKED["azure key"]}, {"azure": azure}),
        (adls, {"credential-type": "client-credentials", **of_application}, {"azure": azure}),
        (gcs, service_account(), {"gcs": google}),
    ):
        yield profile, profile.parse_credential(given), settings


def use_all(marks: Marks, store: Storage, base: str) -> None:
    place = f"{base}/t"
    routes = ClientRoutes("http://catalog.test", "v1/credentials", "v1/sign")
    access = AccessRequest(place, AccessLevel.WRITE, frozenset(), routes)
    actions: dict[str, Callable[[], object]] = {
        "read": lambda: store.read(f"{place}/f", limit=10),
        "write": lambda: store.write_new(f"{place}/f", b"rows"),
        "delete": lambda: store.delete(f"{place}/f"),
        "list": lambda: store.is_empty(place),
        "survey": lambda: list(store.survey(place, within=base)),
        "access": lambda: store.client_access(access),
    }
    for what, action in actions.items():
        noted(marks, action, f"{what} of {base}")


def test_other_clouds_that_fail_in_any_way_bring_no_secret_to_light(marks: Marks) -> None:
    token = json.dumps({"access_token": MARKED["google token"], "expires_in": 3600, "token_type": "Bearer"})
    with cloud_stub.start() as cloud:
        refusals = [(status, ECHO) for status in (200, 400, 401, 403, 404, 409, 412, 429, 500, 503)]
        for has_token in (True, False):
            for status, body in refusals:
                error = f"<Error><Code>{status}</Code><Message>{body}</Message></Error>"
                cloud.reply = lambda _, s=status, e=error: cloud_stub.Answer(e, s)  # type: ignore[method-assign, misc]
                if has_token:
                    cloud.reply = lambda asked, s=status, e=error: (  # type: ignore[method-assign, misc]
                        cloud_stub.Answer(token) if "oken" in asked.path else cloud_stub.Answer(e, s)
                    )
                for profile, given, settings in clouds(cloud):
                    whole = config.current()
                    changed = whole.model_copy(update={"storage": whole.storage.model_copy(update=dict(settings))})
                    with patch.object(config, "current", lambda changed=changed: changed):
                        use_all(marks, profile.open(given), profile.location)
