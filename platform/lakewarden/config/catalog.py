"""Settings of the catalog: storage, limits of tables and views, deletion."""

from typing import Literal

from pydantic import Field

from lakewarden.config.clouds import AwsConfig, AzureConfig, GcsConfig
from lakewarden.config.sections import Paths, Section


class StorageConfig(Section):
    local_roots: Paths = Field(
        (), description="Directories below which warehouses of type `local` may lie; empty switches them off."
    )
    max_calls_at_once: int = Field(
        8,
        ge=1,
        le=256,
        description="Calls that one process may make to one warehouse's storage at a time, and to one token service; "
        "further ones wait, and are answered 503 if it does not respond. Should be lower than `server.threads`.",
    )
    max_open: int = Field(
        1000,
        ge=1,
        le=100_000,
        description="Storages with a credential that one process keeps open; the one that was not used for the longest "
        "time is opened again when it is needed.",
    )
    validation_timeout_s: float = Field(
        60,
        ge=1,
        le=600,
        description="Seconds that the validation of a warehouse's storage may take, with all of its checks. Then the "
        "check that was running has failed.",
    )
    max_validations_at_once: int = Field(
        4,
        ge=1,
        le=64,
        description="Validations of storage that one process runs at a time, with those that a storage does not answer "
        "any more; further ones are answered 503.",
    )
    commit_threads: int = Field(
        16,
        ge=2,
        le=256,
        description="Threads of a process that write the metadata files of commits; one warehouse can take only half "
        "of them, so that a storage that does not respond leaves the others theirs.",
    )
    write_timeout_s: float = Field(
        30,
        ge=0.1,
        le=600,
        description="Seconds that a commit to a table or a new table waits for its metadata file to be written. Then "
        "nothing is changed, the answer is 503, and the file is removed if the storage has written it after all.",
    )
    token_timeout_s: float = Field(
        10,
        ge=0.1,
        le=120,
        description="Seconds that one request to a cloud's token service may take.",
    )
    max_kept_credentials: int = Field(
        5000,
        ge=1,
        le=1_000_000,
        description="Temporary credentials of engines, and answers that contain them, which a process remembers until "
        "half of their life is over: one for each table and level of access. Each takes some 5 KB.",
    )
    aws: AwsConfig = Field(default_factory=AwsConfig)
    azure: AzureConfig = Field(default_factory=AzureConfig)
    gcs: GcsConfig = Field(default_factory=GcsConfig)
    connect_timeout_s: float = Field(
        3, ge=0.1, le=60, description="Seconds to wait for a connection to an object store or its token service."
    )
    request_timeout_s: float = Field(
        10, ge=0.1, le=300, description="Seconds to wait for the whole answer to one request to an object store."
    )
    retries: int = Field(
        2, ge=0, le=10, description="How often a request that an object store did not answer well is sent again."
    )
    retry_pause_s: float = Field(
        0.2,
        ge=0.01,
        le=10,
        description="Seconds before the first retry, at most: each further pause may be twice as long, and its real "
        "length is random.",
    )
    retry_within_s: float = Field(
        20, ge=0.1, le=600, description="Seconds after the first try within which a request is sent again."
    )
    look_timeout_s: float = Field(
        20,
        ge=0.1,
        le=600,
        description="Seconds within which it must be known whether a location contains files, however many pages an "
        "object store needs to say so. Then the answer is 503, and nothing is created there.",
    )
    failures_before_pause: int = Field(
        5,
        ge=1,
        le=1000,
        description="Failed calls in a row after which a process leaves a warehouse's storage alone: requests that "
        "need it are answered 503 at once.",
    )
    pause_s: float = Field(
        5, ge=0.1, le=600, description="Seconds for which it is left alone; then one call at a time tries."
    )


class CatalogConfig(Section):
    staged_lifetime_s: int = Field(
        86_400,
        ge=60,
        le=30 * 86_400,
        description="Seconds for which a staged creation keeps its location for the commit that ends it.",
    )
    max_staged: int = Field(
        1000, ge=1, le=100_000, description="Most staged creations that one caller may have open in one namespace."
    )
    max_changes_per_transaction: int = Field(
        500, ge=1, le=10_000, description="Most tables that one transaction over several tables may change."
    )
    max_updates_per_commit: int = Field(
        10_000, ge=1, description="Most updates, and most requirements, that one commit to a table or view may have."
    )
    metrics_retention_days: int = Field(
        30, ge=1, le=36500, description="Days for which scan and commit reports of engines are kept."
    )
    kept_lists_bytes: int = Field(
        16 * 1024 * 1024,
        ge=0,
        description="Memory, in bytes, for pages of lists that are kept as they were sent last: a list whose names are "
        "unchanged is not built again. One caller's pages take at most `server.caller_share_percent` of it.",
    )
    shared_commit_bytes: int = Field(
        8 * 1024 * 1024,
        ge=0,
        le=256 * 1024 * 1024,
        description="Bytes of a table's metadata up to which commits to it that arrive together share their work. "
        "Commits to larger tables are carried out one by one, each in one of `server.threads`.",
    )
    kept_states_bytes: int = Field(
        64 * 1024 * 1024,
        ge=0,
        description="Memory, in bytes, for the last states of tables that this server has committed: the next commit "
        "to the same table starts from there, and need not read or open its metadata. Processes share it.",
    )
    max_list_entries: int = Field(
        100_000,
        ge=1000,
        le=10_000_000,
        description="Most entries of a list that is requested without pages; a longer list is refused (400) and must "
        "be "
        "read in pages.",
    )
    max_metadata_bytes: int = Field(
        64 * 1024 * 1024,
        ge=64 * 1024,
        le=256 * 1024 * 1024,
        description="Largest metadata of a table or view, in bytes of uncompressed JSON. A change after which it is "
        "larger "
        "is refused (400), unless the change makes it smaller.",
    )
    max_properties: int = Field(10_000, ge=100, description="Most properties of a table, view or generic table.")
    max_properties_bytes: int = Field(
        1024 * 1024,
        ge=4096,
        description="Largest properties of a table, view or generic table: all keys and values together, in bytes.",
    )
    max_generic_schema_bytes: int = Field(
        1024 * 1024, ge=1024, le=16 * 1024 * 1024, description="Largest `schema` of a generic table, in bytes of JSON."
    )
    max_generic_statistics_bytes: int = Field(
        1024 * 1024,
        ge=1024,
        le=16 * 1024 * 1024,
        description="Largest `statistics` of a generic table, in bytes of JSON.",
    )
    max_generic_doc_bytes: int = Field(
        64 * 1024, ge=1024, le=1024 * 1024, description="Longest `doc` of a generic table, in bytes of UTF-8."
    )
    max_namespace_properties: int = Field(1000, ge=10, description="Most properties of a namespace.")
    max_namespace_properties_bytes: int = Field(
        128 * 1024, ge=4096, description="Largest properties of a namespace: all keys and values together, in bytes."
    )
    max_property_key_bytes: int = Field(1024, ge=255, description="Longest key of a property, in bytes.")
    max_property_value_bytes: int = Field(
        256 * 1024, ge=4096, description="Longest value of a property, in bytes of UTF-8."
    )
    metrics_report_bytes: int = Field(
        64 * 1024, ge=1024, description="Largest scan or commit report of an engine, in bytes; a larger one gets 413."
    )
    metrics_bytes_of_one_caller: int = Field(
        32 * 1024 * 1024,
        ge=1024,
        description="Bytes of reports that are stored for one caller in a warehouse per day (UTC); "
        "further reports are answered (204) and counted, but not stored.",
    )
    metrics_bytes_of_warehouse: int = Field(
        512 * 1024 * 1024, ge=1024, description="The same for all callers of a warehouse together."
    )
    statistics_retention_days: int = Field(
        90,
        ge=1,
        le=36500,
        description="Days for which a warehouse's hourly numbers of tables, views and generic tables are kept.",
    )


class DeletionConfig(Section):
    """What happens to dropped objects and their files."""

    purge_grace_s: int = Field(
        60,
        ge=0,
        le=86400,
        description="Seconds after which the files of a dropped table are removed if the request did "
        "not say so (`purgeRequested` omitted); registering the table again before keeps them. 0 "
        "removes them immediately.",
    )
    tracked_from: int = Field(
        1000,
        ge=1,
        le=100000,
        description="Tables, views and generic tables that one request may remove permanently while its caller waits; "
        "if there are more, they leave the catalog immediately and a task removes them.",
    )
    purge_ledger: Literal["counts", "paths"] = Field(
        "counts",
        description="What is recorded of the files that a purge removes: only number and size (`counts`), or also "
        "their "
        "`paths`.",
    )
    purge_ledger_paths: int = Field(
        100_000, ge=0, description="Most paths that are recorded for one purge; the counts always include all files."
    )


class LakehouseConfig(Section):
    warehouse: str | None = Field(
        None,
        description="Warehouse of `/lakehouse` without `/w/…`, as `<name>` in the default project or "
        "`<project>/<name>`; without it the only one of the default project, or the one named `default`.",
    )
