import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable

import pytest
from joserfc.jwk import ECKey, OctKey

from lakewarden.authn.json_fetch import FetchFailed, JsonObject
from lakewarden.authn.provider_keys import ProviderKeys, RefreshLimits, usable_keys
from lakewarden.errors import NotAuthorized, Unavailable
from tests.unit.authn.identity_provider import FakeClock, FakeIdentityProvider

KEYS = "https://id.example.org/keys"


def build(
    fetch: Callable[[str], JsonObject],
    clock: FakeClock,
    *,
    limits: RefreshLimits | None = None,
) -> ProviderKeys:
    return ProviderKeys(
        jwks_address=lambda: KEYS,
        fetch=fetch,
        limits=limits or RefreshLimits(),
        monotonic=clock,
    )


def wait_for_renewal() -> None:
    for thread in threading.enumerate():
        if thread.name == "oidc-key-renewal":
            thread.join(timeout=60)


def test_storm_of_unknown_key_ids_fetches_once_per_interval(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    keys = build(idp.fetch, clock)
    keys.find("first")
    clock.advance(10)

    for number in range(500):
        with pytest.raises(NotAuthorized, match="does not publish"):
            keys.find(f"unknown-{number}")
    assert len(idp.fetched) == 2

    clock.advance(9.9)
    with pytest.raises(NotAuthorized):
        keys.find("unknown")
    assert len(idp.fetched) == 2

    clock.advance(0.1)
    with pytest.raises(NotAuthorized):
        keys.find("unknown")
    assert len(idp.fetched) == 3


def test_many_threads_share_one_fetch(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    is_fetching, may_answer = threading.Event(), threading.Event()

    def slow_fetch(url: str) -> JsonObject:
        is_fetching.set()
        assert may_answer.wait(timeout=60)
        return idp.fetch(url)

    # without a pause: who waited for somebody's fetch takes its result all the same
    keys = build(slow_fetch, clock, limits=RefreshLimits(unknown_key=0, no_keys=0))
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(str(keys.find("first").kid))) for _ in range(12)]
    for thread in threads:
        thread.start()
    assert is_fetching.wait(timeout=60)
    may_answer.set()
    for thread in threads:
        thread.join(timeout=60)

    assert found == ["first"] * 12
    assert len(idp.fetched) == 1


def test_known_key_does_not_wait_for_a_running_fetch(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    is_fetching, may_answer = threading.Event(), threading.Event()
    keys = build(idp.fetch, clock)
    keys.find("first")
    clock.advance(10)

    def stuck_fetch(url: str) -> JsonObject:
        is_fetching.set()
        assert may_answer.wait(timeout=60)
        raise FetchFailed(url)

    keys._fetch = stuck_fetch

    def ask_for_unknown() -> None:
        with pytest.raises(Unavailable):
            keys.find("unknown")

    stranger = threading.Thread(target=ask_for_unknown)
    stranger.start()
    assert is_fetching.wait(timeout=60)
    assert keys.find("first").kid == "first"
    may_answer.set()
    stranger.join(timeout=60)
    assert not stranger.is_alive()


def test_rotation_finds_the_new_key_and_begins_a_generation(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    keys = build(idp.fetch, clock)
    keys.find("first")
    idp.add_key("second")
    clock.advance(10)

    assert keys.find("second").kid == "second"
    assert keys.find("first").kid == "first"
    assert keys.generation == 2


def test_same_keys_again_are_no_change(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    keys = build(idp.fetch, clock)
    keys.find("first")
    clock.advance(10)
    with pytest.raises(NotAuthorized):
        keys.find("unknown")

    assert (len(idp.fetched), keys.generation) == (2, 1)


def test_provider_down_later_keeps_the_old_keys(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    keys = build(idp.fetch, clock)
    keys.find("first")
    idp.is_down = True
    clock.advance(10)

    with pytest.raises(Unavailable, match="cannot be reached"):
        keys.find("second")
    assert keys.find("first").kid == "first"


def test_provider_down_at_start_is_asked_once_a_second(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    idp.is_down = True
    keys = build(idp.fetch, clock)
    for _ in range(50):
        with pytest.raises(Unavailable):
            keys.find("first")
    assert len(idp.fetched) == 1

    clock.advance(1)
    with pytest.raises(Unavailable):
        keys.find("first")
    assert len(idp.fetched) == 2


def test_provider_that_is_back_can_say_that_a_key_is_not_his(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    keys = build(idp.fetch, clock)
    idp.is_down = True
    with pytest.raises(Unavailable):
        keys.find("unknown")
    idp.is_down = False
    clock.advance(1)

    with pytest.raises(NotAuthorized, match="does not publish"):
        keys.find("unknown")


@pytest.mark.parametrize("document", [{}, {"keys": []}, {"keys": "x"}, {"keys": [7, {"kty": "oct", "k": "AAAA"}]}])
def test_empty_key_set_counts_as_down_and_keeps_the_old_keys(
    idp: FakeIdentityProvider, clock: FakeClock, document: JsonObject
) -> None:
    keys = build(idp.fetch, clock)
    keys.find("first")
    keys._fetch = lambda _: document
    clock.advance(10)

    with pytest.raises(Unavailable):
        keys.find("second")
    assert keys.find("first").kid == "first"


def test_old_keys_are_renewed_in_the_background(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    keys = build(idp.fetch, clock)
    keys.find("first")
    del idp.keys["first"]
    idp.add_key("second")

    clock.advance(299)
    keys.renew_if_old()
    wait_for_renewal()
    assert len(idp.fetched) == 1

    clock.advance(1)
    keys.renew_if_old()
    keys.renew_if_old()
    wait_for_renewal()
    assert (len(idp.fetched), keys.generation) == (2, 2)
    with pytest.raises(NotAuthorized):
        keys.find("first")


def test_usable_keys_leaves_out_what_proves_nothing() -> None:
    signing = ECKey.generate_key("P-256", {"kid": "good"})
    entries: list[JsonObject] = [
        dict(signing.as_dict(private=False)),
        dict(OctKey.generate_key(256, {"kid": "secret"}).as_dict(private=True)),
        dict(ECKey.generate_key("P-256", {"kid": "enc", "use": "enc"}).as_dict(private=False)),
        {"kty": "RSA", "kid": "short", "n": urlsafe_b64encode(b"\xc1" * 128).decode().rstrip("="), "e": "AQAB"},
        {"kty": "AKP", "kid": "post-quantum", "pub": "AAAA"},
        {"kty": "EC", "kid": "unknown-curve", "crv": "P-1", "x": "AAAA", "y": "AAAA"},
        {"kty": "EC", "kid": "off-curve", "crv": "P-256", "x": "AAAA", "y": "AAAA"},
        {"kty": "RSA", "kid": "no-numbers"},
        {"kty": "RSA", "kid": "wrong-types", "n": 7, "e": None},
        {"kid": "no-type"},
    ]

    assert list(usable_keys(entries)) == ["good"]


def test_key_for_encryption_does_not_hide_the_signature_key_of_the_same_id() -> None:
    signing, first = ECKey.generate_key("P-256", {"kid": "k"}), ECKey.generate_key("P-256", {"kid": "k", "use": "enc"})
    entries = [dict(each.as_dict(private=False)) for each in (first, signing)]

    assert usable_keys(entries)["k"].as_dict(private=False)["x"] == signing.as_dict(private=False)["x"]


def test_of_two_keys_with_one_id_the_first_is_kept() -> None:
    keys = [ECKey.generate_key("P-256", {"kid": "k"}) for _ in range(2)]
    found = usable_keys([dict(each.as_dict(private=False)) for each in keys])

    assert len(found) == 1
    assert found["k"].as_dict(private=False)["x"] == keys[0].as_dict(private=False)["x"]


def test_slow_provider_holds_so_many_threads_and_no_more(idp: FakeIdentityProvider, clock: FakeClock) -> None:
    is_fetching, may_answer = threading.Event(), threading.Event()

    def slow_fetch(url: str) -> JsonObject:
        is_fetching.set()
        assert may_answer.wait(timeout=60)
        return idp.fetch(url)

    keys = build(slow_fetch, clock, limits=RefreshLimits(places=2, patience=1))
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(str(keys.find("first").kid))) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert is_fetching.wait(timeout=60)
    while keys._places._value > 0:  # the second one is on its way
        time.sleep(0.01)
    clock.advance(1)

    with pytest.raises(Unavailable, match="slow to give its keys"):
        keys.find("first")

    may_answer.set()
    for thread in threads:
        thread.join(timeout=60)
    assert found == ["first", "first"]
    assert keys.find("first").kid == "first"
