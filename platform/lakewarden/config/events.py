"""Settings of events: how long they are kept, and where they are delivered."""

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from lakewarden.config.kafka import KafkaConfig
from lakewarden.config.sections import HttpUri, Names, Section


def _nats(values: tuple[str, ...]) -> tuple[str, ...]:
    for each in values:
        # the value may hold a password: it is not repeated
        if not re.fullmatch(r"(nats|tls)://[^/?#\s@,]+", each):
            raise ValueError("each server must be nats://host:port or tls://host:port, without user and password")
    return values


NatsServers = Annotated[Names, AfterValidator(_nats)]


class KafkaSinkConfig(KafkaConfig):
    topic: str = Field(min_length=1, max_length=249, description="Topic that the events are written to.")
    timeout_s: float = Field(
        30, ge=1, le=600, description="Seconds that a batch of events waits for the brokers before it is tried again."
    )


class NatsSinkConfig(Section):
    servers: NatsServers = Field(
        min_length=1, description="Servers, `nats://host:4222` or `tls://host:4222`, separated by commas."
    )
    stream: str = Field(
        pattern=r"^[^\s.*>/\\]{1,255}$", description="Stream of JetStream that keeps the events; it must exist."
    )
    subject: str = Field(
        "lakewarden",
        pattern=r"^[^\s.*>]+(\.[^\s.*>]+)*$",
        max_length=200,
        description="What subjects begin with: an event has the subject `<subject>.<type>`.",
    )
    user: str | None = Field(None, description="Name of the user, with `password`.")
    password: SecretStr | None = Field(None, description="Password of the user.")
    token: SecretStr | None = Field(None, description="Token, for servers that have one for all.")
    credentials_file: Path | None = Field(
        None, description="File with the credentials of a user (`.creds`), for servers with accounts."
    )
    ca_file: Path | None = Field(None, description="Certificates that are trusted instead of the usual ones.")
    certificate_file: Path | None = Field(
        None, description="Own certificate, for servers that ask for one; with its key, or with `key_file`."
    )
    key_file: Path | None = Field(None, description="Key of the own certificate.")
    timeout_s: float = Field(10, ge=0.5, le=120, description="Seconds that a server has for each answer.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password must be set together")
        if sum(each is not None for each in (self.user, self.token, self.credentials_file)) > 1:
            raise ValueError("set one of user and password, token, and credentials_file")
        if self.key_file is not None and self.certificate_file is None:
            raise ValueError("key_file needs certificate_file")
        if self.is_secured and not all(each.startswith("tls://") for each in self.servers):
            raise ValueError("ca_file and certificate_file need servers that begin with tls://")
        return self

    @property
    def is_secured(self) -> bool:
        return self.ca_file is not None or self.certificate_file is not None


class WebhookSinkConfig(Section):
    url: HttpUri = Field(description="Address to which each event is posted.")
    secret: SecretStr = Field(
        min_length=16, description="Shared secret of at least 16 characters with which requests are signed."
    )
    timeout_s: float = Field(10, ge=0.1, le=120, description="Seconds after which a request counts as failed.")
    ca_file: Path | None = Field(None, description="Certificates that are trusted instead of the usual ones.")
    allow_private_addresses: bool = Field(
        default=False, description="Allow hosts with addresses of private networks or of this machine."
    )


class LogSinkConfig(Section):
    enabled: bool = Field(default=True, description="Write each event to the log of the worker.")


class SinkConfig(Section):
    """One of `kafka`, `nats`, `webhook` and `log`."""

    types: Names = Field((), description="Types of events that are delivered, separated by commas; empty: all.")
    projects: Names = Field((), description="Ids of projects whose events are delivered; empty: all, and the server's.")
    batch: int = Field(500, ge=1, le=10_000, description="Most events that are delivered together.")
    from_oldest: bool = Field(
        default=False, description="Whether a new sink begins with the oldest event that is kept, not with the next."
    )
    kafka: KafkaSinkConfig | None = Field(None, description="Deliver to a topic of Kafka.")
    nats: NatsSinkConfig | None = Field(None, description="Deliver to a stream of NATS JetStream.")
    webhook: WebhookSinkConfig | None = Field(None, description="Deliver to a webhook.")
    log: LogSinkConfig | None = Field(None, description="Write to the log.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        kinds = [name for name in ("kafka", "nats", "webhook", "log") if getattr(self, name) is not None]
        if len(kinds) != 1:
            raise ValueError(f"a sink is one of kafka, nats, webhook and log; {len(kinds)} of them are set")
        return self


class EventsConfig(Section):
    """The log of events, which are kept until they are delivered and then for a while."""

    retention_days: int = Field(
        7, ge=1, le=36500, description="Days for which events are kept after every served sink has received them."
    )
    source: str = Field(
        "urn:lakewarden", min_length=1, max_length=500, description="The `source` of events (CloudEvents), a URI."
    )
    sinks: dict[str, SinkConfig] = Field(
        default_factory=dict, description="Sinks of events by name (`LAKEWARDEN__EVENTS__SINKS__<NAME>__KAFKA__TOPIC`)."
    )
    dead_letters_of_one_sink: int = Field(
        10_000,
        ge=1,
        le=1_000_000,
        description="Most events that are kept of those that a sink refused; the oldest are deleted beyond that.",
    )
    positions_of_one_request: int = Field(
        50_000,
        ge=1000,
        le=1_000_000,
        description="Most positions of the log that one request for events looks at; the next page goes on from there.",
    )
    decisions_of_one_request: int = Field(
        100,
        ge=1,
        le=1000,
        description="Most objects for which one request for events finds out whether the caller sees them.",
    )
    readers: int = Field(
        200,
        ge=1,
        le=100_000,
        description="Most streams of events and requests that wait for events, of all processes together. Each takes a "
        "connection (`server.max_connections`).",
    )
    readers_of_one_caller: int = Field(
        20,
        ge=1,
        le=100_000,
        description="Most streams and waiting requests of one caller, and most pages of the console that one user "
        "follows; further ones get 429.",
    )
    heartbeat_s: float = Field(
        15,
        ge=0.1,
        le=600,
        description="Seconds without events after which a stream says that it is alive, and the reader's rights are "
        "checked again.",
    )
    longest_wait_s: int = Field(
        60, ge=1, le=600, description="Most seconds that a request may wait for events (`wait`)."
    )
    lease_s: float = Field(
        30, ge=1, le=600, description="Seconds after which another worker takes over a sink whose worker is silent."
    )
