"""Scan and commit reports of engines."""

from django.db import models

from catalog.models.tabular import Tabular


class MetricsReport(models.Model):
    tabular = models.ForeignKey(Tabular, on_delete=models.CASCADE)
    received_at = models.DateTimeField(auto_now_add=True)
    actor = models.TextField()
    report_type = models.TextField()
    report = models.JSONField()

    class Meta:
        db_table = "metrics_report"
        indexes = [models.Index(fields=["tabular", "received_at"], name="metrics_report_newest")]

    def __str__(self) -> str:
        return f"{self.report_type} of {self.tabular_id}"
