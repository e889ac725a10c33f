"""The options of a run, from the configuration and the command line."""

from dataclasses import dataclass, field
from typing import Self

from lakewarden.config import Config, KafkaConfig
from lakewarden.config.maintenance import MaintenanceConfig
from lakewarden.config.pipeline import PipelineConfig
from lakewarden.errors import BadRequest
from pipeline.jobs.policies import Mode
from pipeline.sources.postgres_log import Triggers
from pipeline.spark.catalogs import RestCatalog


@dataclass(frozen=True)
class Options:
    """`warehouses` are names, or `<project>/<name>`; none: all that have a log. `once`: end when it is flushed."""

    dsn: str = field(repr=False)
    config: PipelineConfig
    master: str
    warehouses: tuple[str, ...] = ()
    once: bool = False
    maintenance: MaintenanceConfig = field(default_factory=MaintenanceConfig)
    kafka: KafkaConfig | None = None

    @classmethod
    def parse(cls, settings: Config, *, master: str | None, warehouses: tuple[str, ...], once: bool) -> Self:
        """Raises BadRequest for settings that are missing."""
        config = settings.pipeline
        missing = [f"LAKEWARDEN__PIPELINE__{name.upper()}" for name in config.unset]
        dsn = config.database_url or settings.database.url
        if dsn is None:
            missing.append("LAKEWARDEN__DATABASE__URL")
        if missing or dsn is None:
            raise BadRequest(
                f"{', '.join(missing)} must be set: the pipeline logs in to the catalog as any engine does, with an "
                "OAuth2 client that may create and write tables, and reads the log in the database"
            )
        return cls(
            dsn.get_secret_value(),
            config,
            master or config.master,
            warehouses,
            once,
            settings.maintenance,
            settings.ingest.kafka,
        )

    @property
    def mode(self) -> Mode:
        return Mode(self.config.cdc_mode)

    @property
    def triggers(self) -> Triggers:
        config = self.config
        age_s = 0.0 if self.once else config.flush_age_s
        return Triggers(
            events=config.flush_events,
            bytes=config.flush_bytes,
            age_s=age_s,
            max_events=config.max_events,
            max_bytes=config.max_bytes,
            max_tables=config.max_tables,
        )

    def wants(self, warehouse: str) -> bool:
        """Whether the pipeline writes the log of the warehouse `<project>/<name>`."""
        return not self.warehouses or warehouse in self.warehouses or warehouse.partition("/")[2] in self.warehouses

    def catalog(self, name: str, *, warehouse: str) -> RestCatalog:
        """The settings of a warehouse's catalog. Tables are loaded anew each time: other engines change them, too."""
        config = self.config
        return RestCatalog(
            name=name,
            uri=config.catalog_uri or "",
            warehouse=warehouse,
            credential=config.credential,
            oauth2_server_uri=config.oauth2_server_uri or "",
            scope=config.scope,
            extra={
                "header.X-Iceberg-Access-Delegation": config.delegation,
                "token-exchange-enabled": str(config.token_exchange).lower(),
                "cache-enabled": "false",
                "rest-metrics-reporting-enabled": "false",
            },
        )
