"""The durable log of change data: per warehouse, batches in the order of their commits, until they are in Iceberg."""

from ingest.models.batch import IngestBatch
from ingest.models.connection import IngestConnection
from ingest.models.flush_request import IngestFlushRequest
from ingest.models.kafka_floor import IngestKafkaFloor
from ingest.models.log_head import IngestLogHead
from ingest.models.maintenance_run import IngestMaintenanceRun
from ingest.models.pipeline import IngestPipeline
from ingest.models.request import IngestRequest
from ingest.models.request_count import IngestRequestCount
from ingest.models.source import IngestSource

__all__ = [
    "IngestBatch",
    "IngestConnection",
    "IngestFlushRequest",
    "IngestKafkaFloor",
    "IngestLogHead",
    "IngestMaintenanceRun",
    "IngestPipeline",
    "IngestRequest",
    "IngestRequestCount",
    "IngestSource",
]
