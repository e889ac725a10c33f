"""The whole configuration, and the checks across its sections."""

import re
from typing import Literal, Self

from pydantic import Field, model_validator

from lakewarden.config.authorization import AuthorizationConfig, OpenFgaConfig, RolesConfig
from lakewarden.config.catalog import CatalogConfig, DeletionConfig, LakehouseConfig, StorageConfig
from lakewarden.config.console import ConsoleConfig
from lakewarden.config.contracts import ContractsConfig
from lakewarden.config.database import DatabaseConfig, WorkerConfig
from lakewarden.config.events import EventsConfig
from lakewarden.config.identity import KubernetesConfig, OidcConfig
from lakewarden.config.ingest import IngestConfig
from lakewarden.config.maintenance import MaintenanceConfig
from lakewarden.config.metrics import MetricsConfig
from lakewarden.config.pipeline import PipelineConfig
from lakewarden.config.quotas import QuotasConfig
from lakewarden.config.records import AuditConfig, IdempotencyConfig, LogConfig, UsageConfig
from lakewarden.config.secrets import SecretsConfig
from lakewarden.config.sections import Section
from lakewarden.config.server import ServerConfig
from lakewarden.config.tags import TagsConfig
from lakewarden.config.tracing import TracingConfig

RESERVED_PROVIDERS = {
    "kubernetes": "service accounts",
    "system": "the server itself",
    "lakekeeper": "roles without a source system",
    "lakewarden": "roles without a source system, in earlier releases",
    "role": "roles as principals",
}
"""Ids that an OpenID provider must not have, and what uses them: its users or roles could be mistaken for others."""
_PROVIDER_ID = re.compile(r"[a-z0-9-]{1,64}")


class Config(Section):
    mode: Literal["production", "development"] = Field(
        "production", description="`development` allows the built-in issuer; never use it where others can connect."
    )
    server: ServerConfig = Field(default_factory=ServerConfig)
    database: DatabaseConfig = Field(default_factory=DatabaseConfig)
    openid: dict[str, OidcConfig] = Field(
        default_factory=dict, description="OIDC providers by id (`LAKEWARDEN__OPENID__<ID>__ISSUER`)."
    )
    kubernetes: KubernetesConfig = Field(default_factory=KubernetesConfig)
    authorization: AuthorizationConfig = Field(default_factory=AuthorizationConfig)
    openfga: OpenFgaConfig = Field(default_factory=OpenFgaConfig)
    roles: RolesConfig = Field(default_factory=RolesConfig)
    secrets: SecretsConfig = Field(default_factory=SecretsConfig)
    storage: StorageConfig = Field(default_factory=StorageConfig)
    catalog: CatalogConfig = Field(default_factory=CatalogConfig)
    contracts: ContractsConfig = Field(default_factory=ContractsConfig)
    quotas: QuotasConfig = Field(default_factory=QuotasConfig)
    tags: TagsConfig = Field(default_factory=TagsConfig)
    deletion: DeletionConfig = Field(default_factory=DeletionConfig)
    lakehouse: LakehouseConfig = Field(default_factory=LakehouseConfig)
    ingest: IngestConfig = Field(default_factory=IngestConfig)
    maintenance: MaintenanceConfig = Field(default_factory=MaintenanceConfig)
    worker: WorkerConfig = Field(default_factory=WorkerConfig)
    pipeline: PipelineConfig = Field(default_factory=PipelineConfig)
    usage: UsageConfig = Field(default_factory=UsageConfig)
    events: EventsConfig = Field(default_factory=EventsConfig)
    idempotency: IdempotencyConfig = Field(default_factory=IdempotencyConfig)
    console: ConsoleConfig = Field(default_factory=ConsoleConfig)
    audit: AuditConfig = Field(default_factory=AuditConfig)
    log: LogConfig = Field(default_factory=LogConfig)
    metrics: MetricsConfig = Field(default_factory=MetricsConfig)
    tracing: TracingConfig = Field(default_factory=TracingConfig)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for provider in self.openid:
            if not _PROVIDER_ID.fullmatch(provider):
                raise ValueError(f"openid provider id {provider!r} is not 1 to 64 of a-z, 0-9 and '-'")
            if provider in RESERVED_PROVIDERS:
                raise ValueError(
                    f"openid provider id {provider!r} is taken by {RESERVED_PROVIDERS[provider]}: choose another one"
                )
        signing_in = self.console.provider
        if signing_in is not None and signing_in not in self.openid:
            raise ValueError(f"console.provider is {signing_in!r}, but there is no such provider in openid")
        if self.console.client_id is not None and signing_in is None and len(self.openid) != 1:
            raise ValueError(
                f"console.client_id is set, but {len(self.openid)} OpenID providers are configured: "
                "name the one at which people sign in (console.provider)"
            )
        if self.authorization.by_openfga and self.openfga.api_url is None:
            raise ValueError("authorization.backend is 'openfga', but openfga.api_url is missing: set its address")
        for root in self.storage.local_roots:
            if not root.is_absolute():
                raise ValueError(f"storage.local_roots: {str(root)!r} is not an absolute path")
        return self
