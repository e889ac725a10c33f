"""Verifies signatures of JWTs, only with public-key algorithms (RFC 7515, RFC 8725); for oidc.py and kubernetes.py."""

from typing import Final, NamedTuple

from joserfc import jwt
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jws import JWSRegistry

from lakewarden.authn.bearer import UnverifiedToken
from lakewarden.authn.claim_path import Claims
from lakewarden.authn.provider_keys import ProviderKeys
from lakewarden.errors import NotAuthorized

ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
)


class _AsymmetricAlgorithms(JWSRegistry):
    """Only public-key signatures: a token's header cannot select `none` or HS* (RFC 8725 section 3.1)."""

    max_header_length = 4096

    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in ALGORITHMS:
            raise UnsupportedAlgorithmError(f"'{name}' is not an accepted signature algorithm")
        return self.algorithms[name]


_REGISTRY: Final = _AsymmetricAlgorithms(strict_check_header=False)


class SignedClaims(NamedTuple):
    """Claims with a valid signature, and the generation of the keys by which it was verified."""

    claims: Claims
    generation: int


def ensure_accepted_algorithm(token: UnverifiedToken) -> None:
    """Raises NotAuthorized for an algorithm that is not accepted, before the provider is asked for a key."""
    if token.algorithm not in ALGORITHMS:
        raise NotAuthorized("The token is not signed with an accepted algorithm (RS*, PS*, ES* or EdDSA).")


def signed_claims(token: UnverifiedToken, keys: ProviderKeys) -> SignedClaims:
    """Verify the signature and nothing else.

    Raises:
        NotAuthorized: the signature is not valid, or the key does not belong to the issuer.
        Unavailable: the key is not known and the issuer does not answer.

    """
    # may fetch keys, which raises the generation; so the generation is read only after this call
    keys.find(token.key_id)
    generation = keys.generation
    key = keys.find(token.key_id)
    try:
        return SignedClaims(jwt.decode(token.compact, key, registry=_REGISTRY).claims, generation)
    except (JoseError, ValueError, RecursionError) as error:
        raise NotAuthorized("The token's signature is not valid: get a new token.") from error
