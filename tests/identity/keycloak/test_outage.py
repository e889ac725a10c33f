"""Keycloak hangs, is gone, or is not there yet when the server starts."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakewarden.authn.claim_checks import UNKNOWN_ISSUER
from tests.identity.keycloak.caller import Answer, Caller
from tests.identity.keycloak.lane import CallerOf
from tests.identity.keycloak.rotation import LIMITS, add_signing_key, seconds_until_accepted
from tests.servers.keycloak import Keycloak, Realm
from tests.servers.lakewarden_serve import LakewardenServer

AT_ONCE_S = 1.0
CROWD = 40
# a name looked up, two documents, and a little
GIVES_UP_AFTER_S = 8.0


@pytest.fixture
def holder(caller: CallerOf) -> Caller:
    """A caller whose token the server has verified."""
    one = caller("operator")
    assert one.whoami().status == 200
    return one


@pytest.fixture
def unknown_key(lakewarden: LakewardenServer, keycloak: Keycloak, partner: Realm) -> Caller:
    """A caller with a genuine token by a key that the server has not seen yet, and would ask for now."""
    add_signing_key(keycloak, "partner")
    time.sleep(LIMITS.unknown_key)
    return Caller(lakewarden.uri, partner.client_token("operator"))


def timed(caller: Caller) -> tuple[Answer, float]:
    began = time.monotonic()
    answer = caller.whoami()
    return answer, time.monotonic() - began


def test_verified_token_is_not_delayed_while_keycloak_hangs(keycloak: Keycloak, holder: Caller) -> None:
    with keycloak.frozen():
        answer, seconds = timed(holder)

    assert answer.status == 200
    assert seconds < AT_ONCE_S


def test_new_token_by_a_known_key_is_not_delayed_while_keycloak_hangs(keycloak: Keycloak, caller: CallerOf) -> None:
    fresh = caller("operator")
    with keycloak.frozen():
        answer, seconds = timed(fresh)

    assert answer.status == 200
    assert seconds < AT_ONCE_S


def test_crowd_of_tokens_by_an_unknown_key_gets_503_and_delays_nobody_while_keycloak_hangs(
    keycloak: Keycloak, holder: Caller, unknown_key: Caller
) -> None:
    """More of them than the server has threads; their tokens are genuine, and are accepted afterwards."""
    with keycloak.frozen(), ThreadPoolExecutor(CROWD) as threads:
        crowd = [threads.submit(timed, unknown_key) for _ in range(CROWD)]
        time.sleep(0.5)
        verified, verified_s = timed(holder)
        refused = [each.result() for each in crowd]
        late, late_s = timed(unknown_key)

    assert (verified.status, verified_s < AT_ONCE_S) == (200, True), verified_s
    assert {answer.status for answer, _ in refused} == {503}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer, _ in refused)
    assert max(seconds for _, seconds in refused) < GIVES_UP_AFTER_S
    assert (late.status, late_s < AT_ONCE_S) == (503, True)  # nobody waits again for what was tried a moment ago
    seconds_until_accepted(unknown_key)


def test_server_that_starts_without_keycloak_works_when_keycloak_comes(
    keycloak: Keycloak, lakewarden: LakewardenServer, holder: Caller, pond: Realm
) -> None:
    untrusted = Caller(lakewarden.uri, pond.client_token("operator"))
    keycloak.stop()
    try:
        assert holder.whoami().status == 200
        lakewarden.restart()
        refused, seconds = timed(holder)
        not_ours = untrusted.whoami()
    finally:
        keycloak.start()

    assert refused.status == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert seconds < GIVES_UP_AFTER_S
    assert not_ours.error == (401, UNKNOWN_ISSUER)
    assert seconds_until_accepted(holder) < 3
