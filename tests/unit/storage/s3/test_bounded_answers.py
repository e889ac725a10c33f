"""A store, which whoever creates a warehouse may choose, answers with far too much, too slowly, or with broken keys."""

import logging
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest

from lakewarden.config import StorageConfig
from lakewarden.storage.client_access import AccessLevel
from lakewarden.storage.interface import StorageError, StorageUnavailable
from lakewarden.storage.object_faults import StoreFailed
from lakewarden.storage.s3.bounded_answers import LARGEST
from lakewarden.storage.s3.listing import S3Listing
from lakewarden.storage.s3.profile import S3Profile
from lakewarden.storage.s3.server_keys import own_keys, request_config, server_keys
from lakewarden.storage.s3.sts import TokenService, sts_client
from standalone.ports import HOST
from tests.unit.storage.s3.profiles import KEY, ROLE, profile

ANSWER = (
    b'<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>'
    b"<AccessKeyId>ASIA0000000000000000</AccessKeyId><SecretAccessKey>its-secret</SecretAccessKey>"
    b"<SessionToken>its-token</SessionToken><Expiration>2040-01-01T00:00:00Z</Expiration>"
    b"</Credentials></AssumeRoleResult></AssumeRoleResponse>"
)
BROKEN = ANSWER.removesuffix(b"</AssumeRoleResponse>")
SETTINGS = StorageConfig(request_timeout_s=0.5, retries=0)


class Store(ThreadingHTTPServer):
    """Answers with `body`, `times` times; `pause_s` before each byte."""

    body, times, pause_s = b"", 1, 0.0
    over = Event()

    def handle_error(self, *_: object) -> None:
        """Clients that have read enough hang up."""


class Handler(BaseHTTPRequestHandler):
    server: Store

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-length", str(len(self.server.body) * self.server.times))
        self.end_headers()
        for _ in range(self.server.times):
            self._send(self.server.body)

    do_GET = do_POST  # noqa: N815 as the library calls it

    def _send(self, body: bytes) -> None:
        if not self.server.pause_s:
            self.wfile.write(body)
            return
        for at in range(len(body)):
            if self.server.over.wait(self.server.pause_s):
                return
            self.wfile.write(body[at : at + 1])

    def log_message(self, *_: object) -> None:
        """The store's own log is of no interest."""


@pytest.fixture
def store() -> Iterator[Store]:
    server = Store((HOST, 0), Handler)
    server.over = Event()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()
    thread.join(10)


def at(store: Store, **fields: object) -> S3Profile:
    return profile(flavor="s3-compat", endpoint=f"http://{HOST}:{store.server_port}", **fields)


def service(store: Store) -> TokenService:
    of = at(store)
    return TokenService(of, external_id=None, client=sts_client(of, KEY, SETTINGS))


def listing(store: Store) -> S3Listing:
    of = at(store)
    keys = own_keys(of, KEY)
    config = request_config(SETTINGS, s3={"addressing_style": "path"})
    return S3Listing(lambda: keys.client("s3", region=of.region, endpoint=of.s3_url, config=config), of.bucket)


def test_keys_of_a_token_service_are_in_no_log_at_any_level(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    store.body = ANSWER
    keys = service(store).issue("s3://lake/t", AccessLevel.READ)
    assert (keys.secret_access_key, keys.session_token) == ("its-secret", "its-token")
    assert "its-" not in caplog.text


def test_an_answer_that_is_cut_off_is_an_error_of_the_store_that_shows_no_keys(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    store.body = BROKEN
    with pytest.raises(StorageError, match="does not answer") as refused:
        service(store).issue("s3://lake/t", AccessLevel.READ)
    assert (refused.value.__cause__, refused.value.__suppress_context__) == (None, True)
    of_role = server_keys(at(store, assume_role_arn=ROLE), KEY, SETTINGS)
    with pytest.raises(StorageUnavailable):
        of_role.ensure_there()
    assert "its-" not in caplog.text


def test_a_list_that_is_not_one_is_an_error_of_the_store(store: Store) -> None:
    store.body = BROKEN
    with pytest.raises(StoreFailed):
        list(listing(store).below(""))


def test_an_answer_that_comes_in_drops_ends_at_the_time_out(store: Store) -> None:
    store.body, store.pause_s = ANSWER, 0.02  # each byte within the time-out, all of them in several times as much
    with pytest.raises(StorageError, match="does not answer"):
        service(store).issue("s3://lake/t", AccessLevel.READ)


def test_an_answer_is_not_read_beyond_its_limit(store: Store) -> None:
    store.body, store.times = b" " * 2**20, LARGEST // 2**20 + 1
    with pytest.raises(StoreFailed):
        list(listing(store).below(""))


def test_a_connection_is_used_again_after_a_good_answer(store: Store) -> None:
    store.body = ANSWER
    tokens = service(store)
    assert [tokens.issue("s3://lake/t", level).access_key_id for level in AccessLevel] == ["ASIA0000000000000000"] * 2
