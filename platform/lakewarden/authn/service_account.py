"""A Kubernetes service account, from the answer of a TokenReview or from a token's claims; for kubernetes.py."""

import re
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.authn.bearer import SERVICE_ACCOUNT
from lakewarden.authn.claim_path import Claims, claim_at
from lakewarden.authn.interface import VerifiedToken
from lakewarden.authn.json_fetch import JsonObject
from lakewarden.authn.verified_token import is_subject
from lakewarden.config import KubernetesConfig
from lakewarden.errors import NotAuthorized

_USERNAME: Final = re.compile(re.escape(SERVICE_ACCOUNT) + r"([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})")
_NO_ACCOUNT: Final = "The token is not one of a Kubernetes service account: create one with a service account."


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """`username` is `system:serviceaccount:<namespace>:<name>`; an account that is created again has another `uid`.

    Raises:
        NotAuthorized: the token does not belong to a service account but, for example, to a kubelet or a person.

    """

    username: object
    uid: object

    def __post_init__(self) -> None:
        if not isinstance(self.username, str) or not _USERNAME.fullmatch(self.username) or not is_subject(self.uid):
            raise NotAuthorized(_NO_ACCOUNT)

    def verified_token(self, settings: KubernetesConfig, *, issuer: str, expires_at: float) -> VerifiedToken:
        subject = self.uid if settings.subject == "uid" else self.username
        return VerifiedToken(
            id=f"kubernetes~{subject}",
            name="/".join(str(self.username).split(":")[2:]),
            email=None,
            kind="application",
            issuer=issuer,
            expires_at=expires_at,
        )


def reviewed_user(status: JsonObject, audiences: tuple[str, ...]) -> JsonObject | None:
    """The `user` of a TokenReview's status; None if it is not authenticated for one of `audiences`.

    An API server that answers without audiences has not checked them, so the token is refused.
    """
    user, reviewed = status.get("user"), status.get("audiences")
    if status.get("authenticated") is not True or not isinstance(user, dict):
        return None
    accepted = [each for each in reviewed if isinstance(each, str)] if isinstance(reviewed, list) else []
    return None if audiences and set(audiences).isdisjoint(accepted) else user


def claimed_account(claims: Claims) -> ServiceAccount:
    """The account in a signed token's claims; raises NotAuthorized if there is none."""
    uid: Any = claim_at(claims.get("kubernetes.io"), "serviceaccount.uid")
    return ServiceAccount(claims.get("sub"), uid)
