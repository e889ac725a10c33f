"""From where on the records of a partition of Kafka are kept: the log takes no references to earlier ones."""

from django.db import models


class IngestKafkaFloor(models.Model):
    """Raised before records are deleted: a server that was frozen since it wrote one refers to it too late.

    Nor does the log take references to another topic than the one with this id: it was made anew meanwhile.
    """

    pk = models.CompositePrimaryKey("topic", "partition")
    topic = models.TextField()
    topic_id = models.TextField(db_default="", default="", help_text="Kafka's own; empty: of a release before.")
    partition = models.IntegerField()
    lowest = models.BigIntegerField()

    class Meta:
        db_table = "ingest_kafka_floor"

    def __str__(self) -> str:
        return f"{self.topic} {self.partition} from {self.lowest}"
