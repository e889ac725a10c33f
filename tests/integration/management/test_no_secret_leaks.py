"""No storage credential is found anywhere but in the secret store, whatever is sent, refused or breaks."""

import base64
import json
import logging
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NoReturn, get_args

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.db import connection
from pydantic import SecretStr

from catalog.api.openapi import document as catalog_document
from lakewarden import backends, config
from lakewarden.secrets.interface import SecretsUnavailable
from lakewarden.secrets.models import Secret
from lakewarden.storage.adls.profile import AdlsProfile
from lakewarden.storage.credential import StorageCredential
from lakewarden.storage.gcs.profile import GcsProfile
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.profiles import PROFILES
from management import openapi_document
from standalone.ports import HOST, free_port
from tenants.models import Warehouse
from tenants.services.warehouse_validation import ParsedStorage, StorageSpec
from tests.contracts.storage.bucket import KEYS, VERBS, BucketProfile, forget
from tests.installation import Grant
from tests.servers.asgi_client import Answer, AsgiClient

Json = dict[str, Any]
Send = Callable[[str, Any], Answer]

MARK = "LeAkEd7Zq9"
AT = "/management/v1/warehouse"
ALL: dict[str, type[StorageProfile]] = {**PROFILES, "bucket": BucketProfile, "adls": AdlsProfile, "gcs": GcsProfile}
KINDS = [
    pytest.param(name, kind, id=f"{name}-{kind.KIND}") for name, profile in ALL.items() for kind in profile.CREDENTIALS
]


@cache
def private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    kind = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()


def marks() -> list[bytes]:
    """All that must not be found, in the forms in which it could be."""
    plain = [MARK.encode(), *(line.encode() for line in private_key().splitlines()[1:-1])]
    # the whole in Base64 begins anew with each third byte
    encoded = [base64.b64encode(b"x" * shift + MARK.encode())[4:-4] for shift in range(3)]
    return [*plain, *encoded, MARK.encode().hex().encode()]


def profile_of(kind: str) -> Json:
    """A place for each type; nothing answers there, except for buckets of the tests."""
    places: dict[str, Json] = {
        "bucket": {"bucket": "two"},
        "s3": {
            "bucket": "lake-bucket",
            "region": "eu-test-1",
            "endpoint": f"http://{HOST}:{free_port()}",
            "flavor": "s3-compat",
            "sts-enabled": True,
        },
        "adls": {"account-name": "lakeaccount", "filesystem": "lake"},
        "gcs": {"bucket": "lake-bucket"},
    }
    return {"type": kind, **places[kind]}


def filled(kind: type[StorageCredential]) -> Json:
    """A credential whose secrets bear the mark."""
    found: Json = {"type": kind.FAMILY, "credential-type": kind.KIND}
    for name, field in kind.model_fields.items():
        is_secret = SecretStr in {field.annotation, *get_args(field.annotation)}
        found[name.replace("_", "-")] = f"{MARK}-{name}" if is_secret else f"public-{name.replace('_', '-')}"
    if kind.KIND == "shared-access-key":
        found["key"] = base64.b64encode(MARK.encode() * 3).decode()
    if kind.KIND == "service-account-key":
        names = ("client_email", "private_key_id", "project_id")
        found["key"] = dict.fromkeys(names, "public") | {"type": "service_account", "private_key": private_key()}
    return found


def spoilt(credential: Json) -> Iterator[Any]:
    """The credential as it may be sent by mistake."""
    yield credential
    yield [credential]
    yield json.dumps(credential)
    yield {**credential, "credential-type": MARK}
    yield {**credential, "type": MARK}
    yield {**credential, "unknown": MARK}
    for name, value in credential.items():
        if MARK in str(value):
            for wrong in ([value], {"value": value}, f"{value}\x00", f"{value}\ud800", str(value) * 500):
                yield {**credential, name: wrong}


def bodies(profile: Json, credential: Json) -> Iterator[tuple[str, Any]]:
    """Paths below a warehouse (empty: for a new one), and what is sent there."""
    for each in spoilt(credential):
        new = {"warehouse-name": "new", "storage-profile": profile, "storage-credential": each}
        yield "", new
        yield "-creation-validation", new
        yield "/storage", {"storage-profile": profile, "storage-credential": each}
        yield "/storage/validate-profile", {"storage-profile": profile, "storage-credential": each}
        yield "/storage-credential", {"new-storage-credential": each}
        yield "/storage/validate-credential", {"new-storage-credential": each}
    whole = {"warehouse-name": "new", "storage-profile": profile}
    yield "", whole | {"storage-profile": {**profile, "storage-credential": credential}}
    yield "", whole | {"storage-profile": {**profile, **credential, "type": profile["type"]}}
    yield "", whole | credential
    if profile["type"] == "s3":
        for endpoint in (f"https://key:{MARK}@store.example.org", f"https://store.example.org/?sig={MARK}"):
            yield "", whole | {"storage-profile": {**profile, "endpoint": endpoint}}


@pytest.fixture
def client(client: AsgiClient) -> AsgiClient:
    """A client that does not know the document: storage of these types is not in it."""
    return AsgiClient(client.headers)


@pytest.fixture
def warehouse(admin: AsgiClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """The path of a warehouse whose credential is marked; all that is logged is kept."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("LAKEWARDEN__STORAGE__RETRIES", "0")
    config.current.cache_clear()

    def breaks(*_: object) -> NoReturn:
        raise RuntimeError("a defect")

    for name, kind in (("bucket", BucketProfile), ("adls", AdlsProfile), ("gcs", GcsProfile)):
        monkeypatch.setitem(PROFILES, name, kind)
    for cloud in (AdlsProfile, GcsProfile):
        monkeypatch.setattr(cloud, "open", breaks)
    credential = {"credential-type": "key", "name": "public-name", "secret": f"{MARK}-secret"}
    KEYS["public-name"] = (f"{MARK}-secret", VERBS)
    body = {"warehouse-name": "old", "storage-profile": {"type": "bucket", "bucket": "one"}}
    answer = admin.post(AT, body | {"storage-credential": credential})
    assert answer.status == 201, answer.body
    yield f"{AT}/{answer.json()['id']}"
    forget()
    monkeypatch.undo()
    config.current.cache_clear()


@pytest.fixture
def send(admin: AsgiClient, warehouse: str) -> Send:
    def call(path: str, body: Any) -> Answer:
        is_new = path in {"", "-creation-validation"}
        answer = admin.post(f"{AT if is_new else warehouse}{path}", body)
        ensure_clean(f"{path} answered", answer.body + repr(answer.headers).encode())
        return answer

    return call


def ensure_clean(what: str, content: bytes) -> None:
    for mark in marks():
        at = content.find(mark)
        assert at < 0, f"{what}: {content[max(0, at - 200) : at + 60]!r}"


def ensure_nothing_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the log, whose formatter also writes tracebacks, nor in the database."""
    formatter = logging.Formatter("%(name)s %(message)s %(args)s")
    ensure_clean("the log", "\n".join(map(formatter.format, caplog.records)).encode(errors="backslashreplace"))
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"select t::text from {connection.ops.quote_name(table)} t")  # noqa: S608 of the catalog
            ensure_clean(f"the table {table}", "\n".join(row[0] for row in cursor.fetchall()).encode())
            cursor.execute(
                "select attname from pg_attribute where attrelid = %s::regclass and atttypid = 'bytea'::regtype",
                [table],
            )
            for (column,) in cursor.fetchall():
                cursor.execute(f'select "{column}" from "{table}"')  # noqa: S608
                ensure_clean(f"{table}.{column}", b"\n".join(bytes(row[0] or b"") for row in cursor.fetchall()))


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_nothing_that_is_sent_is_found_again(
    send: Send, caplog: pytest.LogCaptureFixture, name: str, kind: type[StorageCredential]
) -> None:
    statuses = {send(path, body).status for path, body in bodies(profile_of(name), filled(kind))}
    assert 400 in statuses
    assert statuses <= {200, 201, 400, 409, 500, 503}
    assert Secret.objects.count() == Warehouse.objects.exclude(storage_secret=None).count()
    ensure_nothing_kept(caplog)


@pytest.mark.parametrize("failure", [SecretsUnavailable("The secret store is sealed"), RuntimeError("a defect")])
def test_a_secret_store_that_fails_reveals_nothing(
    send: Send, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    class Failing:
        def fail(self, _: object) -> NoReturn:
            raise failure

        put = get = delete = fail

    KEYS["public-name"] = (f"{MARK}-secret", VERBS)
    credential = {"credential-type": "key", "name": "public-name", "secret": f"{MARK}-secret"}
    monkeypatch.setattr(backends, "secrets", Failing)
    statuses = {send(path, body).status for path, body in bodies(profile_of("bucket"), credential)}
    assert statuses & {500, 503}
    ensure_nothing_kept(caplog)


def test_what_cannot_be_parsed_or_may_not_be_sent_reveals_nothing(
    admin: AsgiClient, client: AsgiClient, grant: Grant, caplog: pytest.LogCaptureFixture, warehouse: str
) -> None:
    credential = {"credential-type": "key", "name": "public-name", "secret": f"{MARK}-secret"}
    whole = json.dumps({"new-storage-credential": credential})
    key = {"idempotency-key": "0198c0de-0000-7000-8000-00000000000b"}
    for body in (whole[:-3], whole + MARK, whole.replace('"secret"', MARK), f'"{MARK}"', whole.replace(":", "=")):
        for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
            answer = admin.post(f"{warehouse}/storage-credential", body=body.encode(), headers={"content-type": kind})
            assert answer.status in {400, 415}
            ensure_clean("answered", answer.body)
    for caller in (client, client.as_user("stranger"), client.as_user("alice")):
        for what in ("storage-credential", "storage/validate-credential"):
            answer = caller.post(f"{warehouse}/{what}", json.loads(whole), headers=key)
            assert answer.status in {401, 403, 404}
            ensure_clean("answered", answer.body)
    for _ in range(2):
        assert admin.post(f"{warehouse}/storage-credential", json.loads(whole), headers=key).status == 200
    ensure_nothing_kept(caplog)


def test_no_text_of_an_object_shows_a_secret() -> None:
    for parameters in KINDS:
        name, kind = parameters.values
        profile = ALL[str(name)]
        parsed, sent = profile.model_validate(profile_of(str(name))), filled(kind)  # type: ignore[arg-type]
        credential = parsed.parse_credential(sent)
        shown = [credential, StorageSpec(parsed.dump(), sent), ParsedStorage(parsed, credential), parsed]
        for each in shown:
            ensure_clean(
                type(each).__name__, f"{each!r} {each!s} {vars(each) if hasattr(each, '__dict__') else ''}".encode()
            )
    keys = config.current().secrets.keys
    assert keys is not None
    assert keys.get_secret_value() not in repr(config.current())


def test_the_documents_hold_no_example_of_a_secret() -> None:
    for text in (json.dumps(openapi_document.document()), json.dumps(catalog_document.document())):
        ensure_clean("a document", text.encode())
    schemas = openapi_document.document()["components"]["schemas"]
    for name, schema in schemas.items():
        for member, about in schema.get("properties", {}).items():
            if name.startswith("StorageCredential") and about.get("format") == "password":
                assert about["writeOnly"], f"{name}.{member}"
                assert not {"default", "example", "examples"} & about.keys()
