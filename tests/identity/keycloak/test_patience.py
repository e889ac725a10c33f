"""What happens when tokens run out. These tests come late in the lane: the tokens are from its start."""

import time

from pyspark.sql import SparkSession

from lakewarden.authn.claim_checks import EXPIRED
from tests.identity.keycloak.caller import claims_of
from tests.identity.keycloak.lane import CLOCK_SKEW_S, CallerOf


def _await_expiry(token: str) -> None:
    """Wait until no server may accept the token any more, even with the allowed difference between clocks."""
    time.sleep(max(0.0, float(claims_of(token)["exp"]) + CLOCK_SKEW_S + 1 - time.time()))


def test_expired_token_is_refused(caller: CallerOf, brief: str) -> None:
    """It was accepted at the lane's start: what the server remembers of it ends with it."""
    _await_expiry(brief)

    assert caller(token=brief).whoami().error == (401, EXPIRED)


def test_expired_token_that_was_never_seen_is_refused(caller: CallerOf, never_shown: str) -> None:
    _await_expiry(never_shown)

    assert caller(token=never_shown).whoami().error == (401, EXPIRED)


def test_spark_session_works_on_past_the_life_of_its_first_token(
    caller: CallerOf, spark: SparkSession, after_first_token_of_spark: str
) -> None:
    _await_expiry(after_first_token_of_spark)
    assert caller(token=after_first_token_of_spark).whoami().status == 401  # the session's first one has ended before

    spark.sql("CREATE NAMESPACE late")
    spark.sql("CREATE TABLE late.cities AS SELECT 1 AS id")

    assert spark.sql("SELECT id FROM late.cities").collect()[0]["id"] == 1
