import time

from standalone.issuer.pending import Pending, PendingDevice


def device(*, user_code: str = "ABCD-EFGH", lifetime_s: float = 60) -> PendingDevice:
    return PendingDevice(
        client_id="cli", scope="openid", user_code=user_code, expires_at=time.time() + lifetime_s, interval_s=1
    )


def test_pending_is_handed_out_once() -> None:
    pending: Pending[PendingDevice] = Pending()
    item = device()
    pending.add("code", item)

    assert pending.find("code") is item
    assert [pending.take("code"), pending.take("code")] == [item, None]


def test_pending_forgets_what_has_expired() -> None:
    pending: Pending[PendingDevice] = Pending()
    pending.add("old", device(lifetime_s=-1))
    pending.add("new", device())

    assert pending.find("old") is None
    assert pending.find("new") is not None


def test_device_that_polls_too_often_must_wait_longer() -> None:
    clock = [0.0]
    waiting = device()

    def polls_at(second: float) -> bool:
        clock[0] = second
        return waiting.polls_too_often(monotonic=lambda: clock[0])

    assert [polls_at(0), polls_at(1), polls_at(1.5)] == [False, False, True]
    assert waiting.interval_s == 6
    assert [polls_at(7.5), polls_at(13.5)] == [False, False]
