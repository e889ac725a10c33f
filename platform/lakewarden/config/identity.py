"""Settings of authentication: OpenID providers and a Kubernetes cluster."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator

from lakewarden.config.sections import HttpUri, Names, Section


class IntrospectionConfig(Section):
    """Introspection of tokens (RFC 7662); off without `client_id`."""

    client_id: str | None = Field(
        None, min_length=1, description="Client that may introspect tokens; without it opaque tokens are refused."
    )
    client_secret: SecretStr | None = Field(None, min_length=1, description="Secret of that client.")
    uri: HttpUri | None = Field(
        None, description="Introspection endpoint (RFC 7662), if not the one of the discovery document."
    )
    all_tokens: bool = Field(
        default=False, description="Introspect signed tokens (JWT), too, so a revoked token soon loses access."
    )
    recheck_after_s: int = Field(
        60, ge=1, le=3600, description="Seconds after which an accepted token is introspected again, in the background."
    )
    max_missed_rechecks: int = Field(
        5,
        ge=1,
        le=1000,
        description="Number of `recheck_after_s` intervals without a response of the provider after "
        "which an accepted token is refused (503) until the provider confirms it. A higher number "
        "bridges longer outages, but also accepts a revoked token for longer during one.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.client_id is None:
            extra = [name for name in ("client_secret", "uri", "all_tokens") if getattr(self, name)]
            if extra:
                raise ValueError(f"{extra[0]} is set, but client_id is missing: introspection needs a client")
        elif self.client_secret is None:
            raise ValueError("client_id is set, but client_secret is missing: introspection needs both")
        return self


class OidcConfig(Section):
    issuer: HttpUri = Field(description="Issuer URL; its discovery document must be below it.")
    audience: Names = Field((), description="Accepted audiences, separated by commas; empty accepts any.")
    additional_issuers: Names = Field((), description="Further values of `iss` that this provider uses.")
    scope: str | None = Field(None, min_length=1, description="A scope that every token must carry.")
    subject_claim: Names = Field(
        ("oid", "sub"), min_length=1, description="Claims that contain the user's id; the first one present is used."
    )
    roles_claim: str | None = Field(
        None, min_length=1, description="Claim that lists roles, as a dotted path, for example `realm_access.roles`."
    )
    max_roles: int = Field(
        256, ge=1, le=10_000, description="Most roles in a token; one that lists more is refused (401)."
    )
    name_claim: str | None = Field(
        None,
        min_length=1,
        description="Claim with the user's name, as a dotted path; it has precedence over the usual claims.",
    )
    email_claim: str | None = Field(
        None,
        min_length=1,
        description="Claim with the email address, as a dotted path; it has precedence over the usual claims.",
    )
    clock_skew_s: int = Field(
        60, ge=0, le=600, description="Seconds by which the clocks of the provider and of this server may differ."
    )
    jwks_uri: HttpUri | None = Field(
        None, description="Address of the signing keys, if not the one of the discovery document."
    )
    introspection: IntrospectionConfig = Field(default_factory=IntrospectionConfig)


class KubernetesConfig(Section):
    """Service accounts of one Kubernetes cluster as callers; their ids begin with `kubernetes~`."""

    enabled: bool = Field(default=False, description="Accept tokens of Kubernetes service accounts.")
    method: Literal["token-review", "keys"] = Field(
        "token-review",
        description="`token-review` asks the API server, which refuses tokens of deleted accounts; `keys` verifies "
        "signatures with the cluster's keys and accepts a token until it expires.",
    )
    api_server: HttpUri = Field("https://kubernetes.default.svc", description="Address of the cluster's API server.")
    ca_file: Path = Field(
        Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"),
        description="CA certificates (PEM) that have signed the API server's certificate.",
    )
    token_file: Path = Field(
        Path("/var/run/secrets/kubernetes.io/serviceaccount/token"),
        description="This server's own service account token; it is read again for each call.",
    )
    audience: Names = Field(
        (),
        description="Accepted audiences, separated by commas; empty accepts tokens made for the API server itself "
        "(`token-review` only).",
    )
    subject: Literal["uid", "name"] = Field(
        "uid",
        description="What identifies an account: its `uid` (an account that is created again with the same name is "
        "another user) or its `name` (`system:serviceaccount:<namespace>:<name>`).",
    )
    recheck_after_s: int = Field(
        10, ge=1, le=3600, description="Seconds after which an accepted token is reviewed again, in the background."
    )
    max_missed_rechecks: int = Field(
        30,
        ge=1,
        le=1000,
        description="Number of `recheck_after_s` intervals without a response of the API server after "
        "which an accepted token is refused (503) until the API server confirms it.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.enabled and self.method == "keys" and not self.audience:
            raise ValueError("method is 'keys', but audience is missing: any pod's token would be accepted")
        return self
