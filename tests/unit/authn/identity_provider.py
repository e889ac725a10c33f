"""An identity provider in memory, and a clock that moves when told to."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key

from lakewarden.authn.chain import AuthenticatorChain, Surroundings
from lakewarden.authn.json_fetch import FetchJson, JsonObject, PostJson, ServesNobody, post_json
from lakewarden.authn.provider import OidcProvider
from lakewarden.authn.verifier import Verifier

ISSUER = "https://id.example.org/realms/lake"

NOW = 1_800_000_000.0


@dataclass
class FakeClock:
    time: float = NOW

    def __call__(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class FakeIdentityProvider:
    """Signs tokens, and serves discovery and keys to `fetch`, which counts and can be made to fail."""

    issuer: str = ISSUER
    keys: dict[str, Key] = field(default_factory=dict)
    extra_jwks: list[JsonObject] = field(default_factory=list)
    is_down: bool = False
    fetched: list[str] = field(default_factory=list)

    def add_key(self, kid: str, key: Key | None = None) -> Key:
        made = key or ECKey.generate_key("P-256")
        self.keys[kid] = type(made).import_key(made.as_dict(private=True) | {"kid": kid})
        return self.keys[kid]

    def fetch(self, url: str) -> JsonObject:
        self.fetched.append(url)
        if self.is_down:
            raise ServesNobody(f"{url} is down")
        if url.endswith("/.well-known/openid-configuration"):
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        return {"keys": [key.as_dict(private=False) for key in self.keys.values()] + self.extra_jwks}

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Claims of a good token; a claim that is changed to None is left out."""
        good = {"iss": self.issuer, "aud": "lakewarden", "sub": "ada", "iat": NOW, "exp": NOW + 3600}
        return {name: value for name, value in (good | changed).items() if value is not None}

    def token(self, *, kid: str = "first", alg: str = "ES256", header: JsonObject | None = None, **changed: Any) -> str:
        return jwt.encode({"alg": alg, "kid": kid} | (header or {}), self.claims(**changed), self.keys[kid], [alg])


def unsigned_token(header: JsonObject, claims: JsonObject, *, signature: str = "") -> str:
    parts = (urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, claims))
    return ".".join((*parts, signature))


def chain_of(
    providers: Iterable[OidcProvider],
    *,
    fetch: FetchJson,
    clock: FakeClock,
    post: PostJson = post_json,
    cluster: Verifier | None = None,
) -> AuthenticatorChain:
    around = Surroundings(fetch=fetch, post=post, now=clock, monotonic=clock)
    return AuthenticatorChain(providers, cluster=cluster, surroundings=around)
