"""Typed configuration from LAKEWARDEN__* variables; settings.py and the commands read it, nothing else the environment.

`LAKEWARDEN__DATABASE__URL` sets `database.url`; names are matched without case. Unknown names and contradictory
values refuse to start.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)

PREFIX = "LAKEWARDEN__"
RESERVED_PROVIDERS = {
    "kubernetes": "service accounts",
    "system": "the server itself",
    "lakewarden": "roles that stand for nothing outside",
    "role": "roles as principals",
}
"""Ids that no OpenID provider may have, as its users or their roles would be taken for others; and whose they are."""
_PROVIDER_ID = re.compile(r"[a-z0-9-]{1,64}")


class ConfigError(Exception):
    """The configuration cannot be used; the message lists every problem, one a line."""


def _split(value: object) -> object:
    """Accept `a,b` for lists, as environment variables have no lists."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _http(value: str) -> str:
    if not re.match(r"https?://[^/?#\s]+\S*\Z", value):
        raise ValueError("must be an http or https address, for example https://id.example.org")
    return value


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_split)]
HttpUri = Annotated[str, AfterValidator(_http)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value != "*" and not re.fullmatch(r"https?://[A-Za-z0-9._~:\[\]-]+", value):
            raise ValueError(f"{value!r} is no origin: scheme and host without a path, as https://console.example.org")
    return values


Origins = Annotated[Names, AfterValidator(_origins)]


def _networks(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        try:
            ip_network(value, strict=False)
        except ValueError:
            raise ValueError(f"{value!r} is not an address or a network, for example 10.0.0.7 or 10.0.0.0/8") from None
    return values


Networks = Annotated[Names, AfterValidator(_networks)]


class ServerConfig(Section):
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8181, ge=0, le=65535, description="Port to listen on.")
    threads: int = Field(16, ge=1, le=256, description="Threads that run requests (and database connections).")
    base_uri: str | None = Field(
        None, description="Address that clients reach the server by, if not the request's own."
    )
    trusted_proxies: Networks = Field(
        (),
        description="Addresses and networks (`10.0.0.0/8`) of proxies in front, whose `x-forwarded-for`, `-host`, "
        "`-proto`, `-port` and `-prefix` are believed; without them, and from anybody else, these headers are ignored.",
    )
    enable_default_project: bool = Field(
        default=True,
        description="Make a default project at bootstrap, for requests that name none; without it these are refused.",
    )
    max_body_bytes: int = Field(32 * 1024 * 1024, ge=1024, description="Largest request body accepted, in bytes.")
    max_plain_body_bytes: int = Field(
        2 * 1024 * 1024,
        ge=64 * 1024,
        description="Largest body, unpacked, of requests that carry no metadata of a table or view, no transaction and "
        "no metrics report; 413 beyond it.",
    )
    max_working_bytes: int = Field(
        512 * 1024 * 1024,
        ge=64 * 1024 * 1024,
        description="Bytes of memory, estimated, that requests on large tables, lists and bodies may take together; "
        "more of them wait, and are then answered 503.",
    )
    max_sending_bytes: int = Field(
        256 * 1024 * 1024,
        ge=16 * 1024 * 1024,
        description="Bytes of large answers that clients may leave unread together, beyond which new requests are "
        "answered 503.",
    )
    small_body_bytes: int = Field(
        64 * 1024,
        ge=1024,
        description="Bytes of a body that are read before the caller's token is verified.",
    )
    bodies_in_flight_bytes: int = Field(
        128 * 1024 * 1024,
        ge=1024 * 1024,
        description="Memory for the larger bodies of all requests in progress, uncompressed; at least twice "
        "`max_body_bytes`.",
    )
    queue: int = Field(256, ge=1, le=10000, description="Requests that may wait for a thread.")
    queue_timeout_s: float = Field(20, ge=0.1, le=600, description="Seconds that a request may wait for a thread.")
    caller_share_percent: int = Field(
        75,
        ge=1,
        le=100,
        description="Most that one caller may take of the threads, the queue, and the memory of bodies and answers, "
        "while the rest stays free for others.",
    )
    verification_threads: int = Field(
        8, ge=1, le=256, description="Threads that verify tokens which this process does not know yet."
    )
    max_connections: int = Field(1000, ge=1, le=100000, description="Connections that may be open at once.")
    header_timeout_s: float = Field(
        10, ge=0.1, le=600, description="Seconds in which the headers of a request must have come."
    )
    body_timeout_s: float = Field(
        20,
        ge=0.1,
        le=600,
        description="Seconds in which a body must have come, and one more for each `min_bytes_per_s` of it.",
    )
    min_bytes_per_s: int = Field(64 * 1024, ge=1024, description="Slowest pace of a larger body, in bytes a second.")
    write_timeout_s: float = Field(
        30, ge=0.1, le=600, description="Seconds after which a client that does not read its answer is given up."
    )
    keep_alive_timeout_s: int = Field(
        75, ge=1, le=3600, description="Seconds for which a connection without a request stays open."
    )
    stop_timeout_s: float = Field(
        25,
        ge=0,
        le=3600,
        description="Seconds that requests in progress get to end after TERM; the process has ended 4 seconds later.",
    )
    cors_origins: Origins = Field(
        (), description="Origins whose pages may call the API from a browser; `*` is all of them, empty none."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.bodies_in_flight_bytes < 2 * self.max_body_bytes:
            raise ValueError(
                f"bodies_in_flight_bytes is {self.bodies_in_flight_bytes}: at least twice max_body_bytes is needed"
            )
        return self


class DatabaseConfig(Section):
    url: SecretStr | None = Field(None, description="postgresql://user:password@host:port/database")
    connect_timeout_s: int = Field(10, ge=1, description="Seconds to wait for a connection.")
    start_wait_s: float = Field(
        60,
        ge=0,
        le=86400,
        description="Seconds for which `lakewarden serve` and `lakewarden work` wait at their start for a database "
        "that cannot be reached. 0: they end at once.",
    )
    lock_timeout_s: float = Field(
        5,
        gt=0,
        le=3600,
        description="Seconds for which a request waits for a lock that another holds; then nothing is changed, and the "
        "answer is 503 with Retry-After.",
    )
    statement_timeout_s: float = Field(
        30,
        gt=0,
        le=3600,
        description="Seconds that a statement of a request may take; a database that is silent for 3 s more is hung up "
        "on.",
    )
    idle_in_transaction_timeout_s: float = Field(
        15,
        gt=0,
        le=3600,
        description="Seconds after which the database ends a transaction in which it is told nothing: a server that is "
        "frozen, or gone, holds its locks for no longer.",
    )
    transaction_timeout_s: float = Field(
        120, gt=0, le=86400, description="Seconds that a transaction of a request may take (PostgreSQL 17 and later)."
    )
    keepalive_idle_s: int = Field(
        10, ge=1, le=7200, description="Seconds of silence after which a connection's other end is probed, by either."
    )
    keepalive_interval_s: int = Field(5, ge=1, le=3600, description="Seconds between two such probes.")
    keepalive_count: int = Field(3, ge=1, le=100, description="Probes without an answer that end a connection.")
    tcp_user_timeout_s: int = Field(
        20, ge=1, le=3600, description="Seconds for which what was sent may stay without a sign that it arrived."
    )


class IntrospectionConfig(Section):
    """How to ask a provider about a token (RFC 7662); off without `client_id`."""

    client_id: str | None = Field(
        None, min_length=1, description="Client that may introspect tokens; without it opaque tokens are refused."
    )
    client_secret: SecretStr | None = Field(None, min_length=1, description="Secret of that client.")
    uri: HttpUri | None = Field(
        None, description="Introspection endpoint (RFC 7662), if not the one of the discovery document."
    )
    all_tokens: bool = Field(
        default=False, description="Introspect signed tokens (JWT) too, so that a revoked one soon loses its access."
    )
    recheck_after_s: int = Field(
        60, ge=1, le=3600, description="Seconds after which an accepted token is introspected again, in the background."
    )
    max_missed_rechecks: int = Field(
        5,
        ge=1,
        le=1000,
        description="After so many times `recheck_after_s` without an answer of the provider an accepted token is "
        "refused (503) until the provider confirms it. More bridge a longer outage, and believe a revoked token "
        "longer during one.",
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
        ("oid", "sub"), min_length=1, description="Claims that name the user; the first present is taken."
    )
    roles_claim: str | None = Field(
        None, min_length=1, description="Claim that lists roles, as a dotted path, for example `realm_access.roles`."
    )
    max_roles: int = Field(
        256, ge=1, le=10_000, description="Most roles in a token; one that lists more is refused (401)."
    )
    name_claim: str | None = Field(
        None, min_length=1, description="Claim to take the user's name from before the usual ones, as a dotted path."
    )
    email_claim: str | None = Field(
        None, min_length=1, description="Claim to take the e-mail address from before the usual ones, as a dotted path."
    )
    clock_skew_s: int = Field(
        60, ge=0, le=600, description="Seconds by which the clocks of the provider and of this server may differ."
    )
    jwks_uri: HttpUri | None = Field(
        None, description="Address of the signing keys, if not the one of the discovery document."
    )
    introspection: IntrospectionConfig = Field(default_factory=IntrospectionConfig)


class KubernetesConfig(Section):
    """Service accounts of one cluster as callers; their ids begin with `kubernetes~`."""

    enabled: bool = Field(default=False, description="Accept tokens of Kubernetes service accounts.")
    method: Literal["token-review", "keys"] = Field(
        "token-review",
        description="`token-review` asks the API server, and notices a deleted account; `keys` verifies signatures "
        "with the cluster's keys, and accepts a token until it expires.",
    )
    api_server: HttpUri = Field("https://kubernetes.default.svc", description="Address of the cluster's API server.")
    ca_file: Path = Field(
        Path("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"),
        description="Certificates (PEM) that the API server's must be signed by.",
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
        description="What names an account: its `uid` (an account of the same name that is made later is another one)"
        " or its `name` (`system:serviceaccount:<namespace>:<name>`).",
    )
    recheck_after_s: int = Field(
        10, ge=1, le=3600, description="Seconds after which an accepted token is reviewed again, in the background."
    )
    max_missed_rechecks: int = Field(
        30,
        ge=1,
        le=1000,
        description="After so many times `recheck_after_s` without an answer of the API server an accepted token is "
        "refused (503) until the API server confirms it.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.enabled and self.method == "keys" and not self.audience:
            raise ValueError("method is 'keys', but audience is missing: any pod's token would be accepted")
        return self


class AuthorizationConfig(Section):
    backend: Literal["database", "openfga", "allow-all"] = Field(
        "database", description="Who decides what a caller may do; `openfga` needs `openfga.api_url`."
    )


class OpenFgaConfig(Section):
    """The OpenFGA server that decides when `authorization.backend` is `openfga`."""

    api_url: HttpUri | None = Field(None, description="Address of OpenFGA's HTTP API.")
    api_token: SecretStr | None = Field(None, min_length=1, description="Key (`preshared`) that OpenFGA accepts.")
    store: str = Field(
        "lakewarden",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@-]{2,63}$",
        description="Name of the store there; it is made if it is missing, and must be no other installation's.",
    )
    timeout_s: float = Field(
        3,
        ge=1,
        le=60,
        description="Seconds to wait for an answer; not more than OpenFGA's own `--request-timeout` and "
        "`--listObjects-deadline`.",
    )


class RolesConfig(Section):
    max_nesting_depth: int = Field(
        10, ge=1, le=100, description="Most roles in a chain in which each is a member of the next."
    )


class StorageConfig(Section):
    local_roots: Paths = Field(
        (), description="Directories below which warehouses of type `local` may lie; empty switches them off."
    )
    max_calls_at_once: int = Field(
        8,
        ge=1,
        le=256,
        description="Calls of one process that may be inside one warehouse's storage; further ones wait, and are "
        "answered 503 while it does not answer. Leave some of `server.threads` for what needs no storage.",
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
    max_list_entries: int = Field(
        100_000,
        ge=1000,
        le=10_000_000,
        description="Most entries of a list that is asked for without pages; a longer one is refused (400), and can be "
        "read in pages.",
    )
    max_metadata_bytes: int = Field(
        64 * 1024 * 1024,
        ge=64 * 1024,
        le=256 * 1024 * 1024,
        description="Largest metadata of a table or view, in bytes of its JSON, not packed. A change that leaves it "
        "larger is refused (400), unless it makes it smaller than before.",
    )
    max_properties: int = Field(10_000, ge=100, description="Most properties of a table or view.")
    max_properties_bytes: int = Field(
        1024 * 1024, ge=4096, description="Largest properties of a table or view: all keys and values together."
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
        description="Bytes of reports that are kept of one caller in a warehouse and a day (UTC); what comes beyond it "
        "is answered (204), counted and not kept.",
    )
    metrics_bytes_of_warehouse: int = Field(
        512 * 1024 * 1024, ge=1024, description="The same for all callers of a warehouse together."
    )
    statistics_retention_days: int = Field(
        90, ge=1, le=36500, description="Days for which a warehouse's hourly numbers of tables and views are kept."
    )


class DeletionConfig(Section):
    """What happens to what is dropped."""

    purge_grace_s: int = Field(
        60,
        ge=0,
        le=86400,
        description="Seconds for which the files of a dropped table stay when nobody asked for their removal in so "
        "many words; registering the table again meanwhile keeps them. 0 removes them at once.",
    )
    tracked_from: int = Field(
        1000,
        ge=1,
        le=100000,
        description="Tables and views that one request may remove for good while its caller waits; more leave the "
        "catalog at once, and are removed by a task.",
    )
    purge_ledger: Literal["counts", "paths"] = Field(
        "counts",
        description="What is kept of the files that a purge removes: how many and how large they were, or their "
        "`paths` too.",
    )
    purge_ledger_paths: int = Field(
        100_000, ge=0, description="Most paths that are kept of one purge; the counts are of all its files."
    )


class LakehouseConfig(Section):
    warehouse: str | None = Field(
        None,
        description="Warehouse of `/lakehouse` without `/w/…`, as `<name>` in the default project or "
        "`<project>/<name>`; without it the only one of the default project, or the one named `default`.",
    )


class WorkerConfig(Section):
    """What one process of `lakewarden work` takes on."""

    tasks_at_once: int = Field(4, ge=1, le=64, description="Tasks that a worker runs at the same time.")
    queues: Names = Field(
        (),
        description="Queues that a worker takes tasks from, separated by commas; empty takes all. Of the workers "
        "together, each queue needs one: `tabular_purge`, `soft_deletion`, `task_log_cleanup`, `housekeeping`.",
    )
    give_up_after_s: int = Field(
        0,
        ge=0,
        description="Seconds without a database after which a worker ends with exit code 1; 0 is never: it tries again "
        "until the database is back.",
    )
    lock_timeout_s: float = Field(30, gt=0, le=86400, description="As `database.lock_timeout_s`, for a worker.")
    statement_timeout_s: float = Field(
        600, gt=0, le=86400, description="As `database.statement_timeout_s`, for a worker."
    )
    idle_in_transaction_timeout_s: float = Field(
        60, gt=0, le=86400, description="As `database.idle_in_transaction_timeout_s`, for a worker."
    )


class UsageConfig(Section):
    flush_interval_s: int = Field(
        30, ge=1, le=3600, description="Seconds after which the counts of calls are written to the database."
    )
    retention_days: int = Field(
        90, ge=1, le=36500, description="Days for which the hourly counts of calls (`endpoint-statistics`) are kept."
    )


class EventsConfig(Section):
    """The outbox: events of changes, kept until they are delivered, and for a while where nobody asks for them."""

    retention_days: int = Field(
        7, ge=1, le=36500, description="Days for which events are kept that every enabled sink has had."
    )
    max_rows: int = Field(
        1_000_000,
        ge=1000,
        description="Most such events that are kept; beyond it the oldest go before their time.",
    )


class IdempotencyConfig(Section):
    """What is remembered by `Idempotency-Key`. Changes are always: with the change itself, for 35 minutes."""

    refusals_per_hour: int = Field(
        1000,
        ge=0,
        description="Refusals (400, 406, 409, 422) of one caller's authorized requests that are remembered in an hour; "
        "beyond it a repeated request is judged anew.",
    )
    max_answer_bytes: int = Field(
        16 * 1024,
        ge=1024,
        description="Largest answer of the management API that is remembered; a request with a larger one is never "
        "carried out twice either, but its answer cannot be repeated.",
    )


class AuditConfig(Section):
    """What is kept of who did what. Changes are always recorded, with the change itself."""

    decisions: Literal["all", "denied", "none"] = Field(
        "all",
        description="Which decisions on requests are recorded beside the changes: `all`, only what was `denied` "
        "(bad credentials too), or `none`.",
    )
    retention_days: int = Field(
        90, ge=1, le=36500, description="Days for which the audit is kept; older days are dropped whole."
    )
    window_s: int = Field(
        10,
        ge=1,
        le=300,
        description="Seconds for which equal refusals of a caller (without credentials: of an address) are gathered "
        "into one entry with their number. A server that is killed loses those of this time.",
    )
    groups: int = Field(
        10_000,
        ge=100,
        description="Most different refusals, and as many decisions, that wait in memory to be written; more are only "
        "counted, in an entry that says so.",
    )
    refusals_of_one_caller: int = Field(
        100,
        ge=1,
        description="Most different refusals of one caller in `window_s` that get an entry each; more are "
        "only counted.",
    )
    decisions_of_one_caller: int = Field(
        1000,
        ge=1,
        description="Most different decisions on one caller's requests in a second that get an entry each; more are "
        "only counted.",
    )


class LogConfig(Section):
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        "INFO", description="Least severe level that is logged."
    )


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
    storage: StorageConfig = Field(default_factory=StorageConfig)
    catalog: CatalogConfig = Field(default_factory=CatalogConfig)
    deletion: DeletionConfig = Field(default_factory=DeletionConfig)
    lakehouse: LakehouseConfig = Field(default_factory=LakehouseConfig)
    worker: WorkerConfig = Field(default_factory=WorkerConfig)
    usage: UsageConfig = Field(default_factory=UsageConfig)
    events: EventsConfig = Field(default_factory=EventsConfig)
    idempotency: IdempotencyConfig = Field(default_factory=IdempotencyConfig)
    audit: AuditConfig = Field(default_factory=AuditConfig)
    log: LogConfig = Field(default_factory=LogConfig)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for provider in self.openid:
            if not _PROVIDER_ID.fullmatch(provider):
                raise ValueError(f"openid provider id {provider!r} is not 1 to 64 of a-z, 0-9 and '-'")
            if provider in RESERVED_PROVIDERS:
                raise ValueError(
                    f"openid provider id {provider!r} is taken by {RESERVED_PROVIDERS[provider]}: choose another one"
                )
        if self.authorization.backend == "openfga" and self.openfga.api_url is None:
            raise ValueError("authorization.backend is 'openfga', but openfga.api_url is missing: set its address")
        for root in self.storage.local_roots:
            if not root.is_absolute():
                raise ValueError(f"storage.local_roots: {str(root)!r} is not an absolute path")
        return self


def read(environment: Mapping[str, str]) -> Config:
    """Build the configuration from `environment`.

    Raises ConfigError that names each wrong variable; values of secrets are never part of the message.
    """
    tree: dict[str, Any] = {}
    for name, value in environment.items():
        if not name.upper().startswith(PREFIX):
            continue
        *groups, leaf = name[len(PREFIX) :].lower().split("__")
        node = tree
        for group in groups:
            node = node.setdefault(group, {})
            if not isinstance(node, dict):
                raise ConfigError(f"{name} goes below a setting that has a value itself")
        node[leaf] = value
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise ConfigError("\n".join(_sentences(error))) from None


def _sentences(error: ValidationError) -> list[str]:
    lines = []
    for problem in error.errors(include_input=False, include_url=False):
        name = PREFIX + "__".join(str(part).upper() for part in problem["loc"] if isinstance(part, str))
        reason = (
            "is not a known setting"
            if problem["type"] == "extra_forbidden"
            else problem["msg"].removeprefix("Value error, ")
        )
        lines.append(f"{name}: {reason}" if problem["loc"] else reason)
    return lines


@cache
def current() -> Config:
    """The configuration of this process."""
    return read(os.environ)
