"""The tables of background work. Only this app's SQL may name them, which a test checks; others call its functions."""

from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce, Now

from lakewarden.tasks.queues import PURGE

_NO_WAREHOUSE = UUID(int=0)


class Task(models.Model):
    """One piece of background work, as the management API shows it. A worker runs its job (procrastinate's).

    A task with an outcome has ended. A task that runs again gets a new job but keeps its id. `attempt` is the number of
    the latest run, `resume_at` the time when a stopped task runs again.
    """

    id = models.UUIDField(primary_key=True)
    project_id = models.TextField()
    warehouse_id = models.UUIDField(null=True)
    queue_name = models.TextField()
    task_name = models.TextField()
    arguments = models.JSONField()
    lock = models.TextField(null=True)  # noqa: DJ001 none is not the same as an empty one
    job_id = models.BigIntegerField()
    entity_type = models.TextField()
    entity_id = models.TextField()
    entity_name = ArrayField(models.TextField(), db_default=[])
    parent_id = models.UUIDField(null=True)
    scheduled_for = models.DateTimeField()
    attempt = models.IntegerField(db_default=0)
    progress = models.FloatField(db_default=0)
    details = models.JSONField(null=True)
    message = models.TextField(null=True)  # noqa: DJ001 as the API shows it
    last_heartbeat_at = models.DateTimeField(null=True)
    cancel_requested = models.BooleanField(db_default=False)
    resume_at = models.DateTimeField(null=True)
    outcome = models.TextField(null=True)  # noqa: DJ001 it has none until it is over
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "task"
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__in=["SUCCESS", "FAILED", "CANCELLED"]), name="task_outcome_known"
            ),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, finished_at__isnull=True)
                | Q(outcome__isnull=False, finished_at__isnull=False),
                name="task_finished_with_outcome",
            ),
            models.CheckConstraint(condition=Q(progress__range=(0, 1)), name="task_progress_is_a_part"),
        ]
        indexes = [
            models.Index(
                fields=["warehouse_id", "id"], condition=Q(warehouse_id__isnull=False), name="task_of_warehouse"
            ),
            models.Index(fields=["project_id", "id"], condition=Q(warehouse_id__isnull=True), name="task_of_project"),
            models.Index(fields=["entity_id"], name="task_of_entity"),
            models.Index(fields=["job_id"], name="task_job"),
            models.Index(fields=["parent_id"], condition=Q(parent_id__isnull=False), name="task_parent"),
            models.Index(
                fields=["project_id", "finished_at"],
                condition=Q(outcome__in=["SUCCESS", "CANCELLED"]),
                name="task_finished",
            ),
            models.Index(
                fields=["lock"],
                opclasses=["text_pattern_ops"],
                condition=Q(queue_name=PURGE) & (Q(outcome__isnull=True) | Q(outcome="FAILED")),
                name="task_purge_place",
            ),
            models.Index(fields=["job_id"], condition=Q(outcome__isnull=True), name="task_open"),
            models.Index(
                fields=["project_id", "queue_name", "scheduled_for"],
                condition=Q(outcome__isnull=True),
                name="task_turn",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.task_name} {self.id}"


class TaskAttempt(models.Model):
    """One run of a task; it is running while `ended_at` is null."""

    pk = models.CompositePrimaryKey("task_id", "attempt")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, db_index=False)
    attempt = models.IntegerField()
    status = models.TextField(db_default="RUNNING")
    scheduled_for = models.DateTimeField()
    started_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)
    progress = models.FloatField(db_default=0)
    details = models.JSONField(null=True)
    message = models.TextField(null=True)  # noqa: DJ001 as the API shows it

    class Meta:
        db_table = "task_attempt"
        constraints = [
            models.CheckConstraint(
                condition=Q(status="RUNNING", ended_at__isnull=True)
                | (~Q(status="RUNNING") & Q(ended_at__isnull=False)),
                name="task_attempt_ended_or_running",
            )
        ]

    def __str__(self) -> str:
        return f"{self.task_id} {self.attempt}"


class TaskQueueConfig(models.Model):
    """The settings of a queue for a warehouse, or (`warehouse_id` null) for the project."""

    project_id = models.TextField()
    warehouse_id = models.UUIDField(null=True)
    queue_name = models.TextField()
    settings = models.JSONField()
    max_silence_s = models.IntegerField(null=True)
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "task_queue_config"
        constraints = [
            models.UniqueConstraint(
                F("project_id"), Coalesce("warehouse_id", _NO_WAREHOUSE), F("queue_name"), name="task_queue_config_one"
            )
        ]

    def __str__(self) -> str:
        return f"{self.queue_name} of {self.warehouse_id or self.project_id}"


class PurgeLedger(models.Model):
    """How many files, bytes and folders one attempt of a purge has removed so far (see `purge_ledger`)."""

    pk = models.CompositePrimaryKey("task_id", "attempt")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, db_index=False)
    attempt = models.IntegerField()
    location = models.TextField()
    started_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    files = models.BigIntegerField(db_default=0)
    bytes = models.BigIntegerField(db_default=0)
    folders = models.BigIntegerField(db_default=0)

    class Meta:
        db_table = "purge_ledger"

    def __str__(self) -> str:
        return f"{self.location}: {self.files} files"


class PurgeLedgerPath(models.Model):
    """A file that a purge has removed; only kept if `deletion.purge_ledger` is `paths`."""

    task = models.ForeignKey(Task, on_delete=models.CASCADE, db_index=False)
    attempt = models.IntegerField()
    path = models.TextField()
    bytes = models.BigIntegerField()

    class Meta:
        db_table = "purge_ledger_path"
        indexes = [models.Index(fields=["task"], name="purge_ledger_path_task")]

    def __str__(self) -> str:
        return self.path


class PurgeIntent(models.Model):
    """The files that a purge is about to remove; `entries` is JSON, compressed by zlib."""

    task = models.OneToOneField(Task, on_delete=models.CASCADE, primary_key=True)
    attempt = models.IntegerField()
    entries = models.BinaryField()
    announced_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "purge_intent"

    def __str__(self) -> str:
        return f"{self.task_id} {self.attempt}"


class WorkerStop(models.Model):
    """The last worker that was asked to stop: a single row, with the id 1; `lakewarden doctor` reads it."""

    host = models.TextField()
    stopped_at = models.DateTimeField()

    class Meta:
        db_table = "worker_stop"

    def __str__(self) -> str:
        return f"{self.host} at {self.stopped_at}"
