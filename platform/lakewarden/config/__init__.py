"""The typed configuration from the variables LAKEWARDEN__*; nothing else may read the environment.

`LAKEWARDEN__DATABASE__URL` sets `database.url`; names are compared ignoring case. The server does not start with an
unknown name, an invalid value or a contradiction.
"""

from lakewarden.config.authorization import AuthorizationConfig, OpenFgaConfig, RolesConfig
from lakewarden.config.catalog import CatalogConfig, DeletionConfig, LakehouseConfig, StorageConfig
from lakewarden.config.clouds import AwsConfig, AzureConfig, GcsConfig
from lakewarden.config.contracts import ContractsConfig, VerifierConfig
from lakewarden.config.database import DatabaseConfig, SessionTimeouts, WorkerConfig
from lakewarden.config.environment import PREFIX, ConfigError, current, read
from lakewarden.config.events import EventsConfig, KafkaSinkConfig, NatsSinkConfig, SinkConfig, WebhookSinkConfig
from lakewarden.config.identity import IntrospectionConfig, KubernetesConfig, OidcConfig
from lakewarden.config.ingest import IngestConfig
from lakewarden.config.kafka import KafkaConfig, KafkaLogConfig
from lakewarden.config.maintenance import MaintenanceConfig
from lakewarden.config.metrics import MetricsConfig
from lakewarden.config.quotas import QuotasConfig
from lakewarden.config.records import AuditConfig, IdempotencyConfig, LogConfig, UsageConfig
from lakewarden.config.root import RESERVED_PROVIDERS, Config
from lakewarden.config.secrets import SecretsConfig
from lakewarden.config.server import ServerConfig
from lakewarden.config.tags import TagsConfig
from lakewarden.config.tracing import TracingConfig
from lakewarden.config.vault import VaultConfig

__all__ = [
    "PREFIX",
    "RESERVED_PROVIDERS",
    "AuditConfig",
    "AuthorizationConfig",
    "AwsConfig",
    "AzureConfig",
    "CatalogConfig",
    "Config",
    "ConfigError",
    "ContractsConfig",
    "DatabaseConfig",
    "DeletionConfig",
    "EventsConfig",
    "GcsConfig",
    "IdempotencyConfig",
    "IngestConfig",
    "IntrospectionConfig",
    "KafkaConfig",
    "KafkaLogConfig",
    "KafkaSinkConfig",
    "KubernetesConfig",
    "LakehouseConfig",
    "LogConfig",
    "MaintenanceConfig",
    "MetricsConfig",
    "NatsSinkConfig",
    "OidcConfig",
    "OpenFgaConfig",
    "QuotasConfig",
    "RolesConfig",
    "SecretsConfig",
    "ServerConfig",
    "SessionTimeouts",
    "SinkConfig",
    "StorageConfig",
    "TagsConfig",
    "TracingConfig",
    "UsageConfig",
    "VaultConfig",
    "VerifierConfig",
    "WebhookSinkConfig",
    "WorkerConfig",
    "current",
    "read",
]
