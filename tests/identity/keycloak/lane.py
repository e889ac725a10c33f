"""What the tests of this lane and its server agree on."""

from collections.abc import Callable

from tests.identity.keycloak.caller import Caller

AUDIENCE = "lakewarden"

# Keycloak runs on the same clock; by default a token is accepted a minute longer, which a test would have to wait for
CLOCK_SKEW_S = 5

CallerOf = Callable[..., Caller]
