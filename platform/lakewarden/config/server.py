"""Settings of the HTTP server."""

import re
from ipaddress import ip_network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from lakewarden.config.sections import Names, Section


def _origins(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value != "*" and not re.fullmatch(r"https?://[A-Za-z0-9._~:\[\]-]+", value):
            raise ValueError(
                f"{value!r} is not a valid origin: scheme and host without a path are "
                "expected, for example https://console.example.org"
            )
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


THREADS_OF_A_PROCESS = 4
"""With fewer threads, one caller could take all of them (`caller_share_percent`)."""


class ServerConfig(Section):
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8181, ge=0, le=65535, description="Port to listen on.")
    processes: int | None = Field(
        None,
        ge=1,
        le=256,
        description="Number of server processes; by default one for each core, but no more than a quarter of "
        "`threads`. "
        "`threads`, `queue`, `verification_threads`, `max_connections` and `storage.max_calls_at_once` are divided "
        "among them; limits of memory are shared.",
    )
    threads: int = Field(
        16,
        ge=1,
        le=4096,
        description="Threads that run requests, each with a database connection; of all processes together.",
    )
    base_uri: str | None = Field(
        None, description="Address under which clients reach the server, if it differs from the request's."
    )
    trusted_proxies: Networks = Field(
        (),
        description="Addresses and networks (`10.0.0.0/8`) of proxies in front of the server, whose headers "
        "`x-forwarded-for`, `-host`, `-proto`, `-port` and `-prefix` are used; those of other senders are ignored.",
    )
    enable_default_project: bool = Field(
        default=True,
        description="Create a default project at bootstrap, for requests that do not name a project; "
        "without it, such requests are refused.",
    )
    max_body_bytes: int = Field(32 * 1024 * 1024, ge=1024, description="Largest request body accepted, in bytes.")
    max_plain_body_bytes: int = Field(
        2 * 1024 * 1024,
        ge=64 * 1024,
        description="Largest uncompressed body, in bytes, of requests without metadata of a table or view, without a "
        "transaction and without a metrics report; a larger one is refused (413).",
    )
    max_body_values: int = Field(
        500_000,
        ge=10_000,
        description="Most values (numbers, strings, lists, objects) in a request body, counted by its commas; a body "
        "without metadata of a table or view and without a transaction may have a fifth of them. Else 413.",
    )
    max_working_bytes: int = Field(
        512 * 1024 * 1024,
        ge=64 * 1024 * 1024,
        description="Estimated memory, in bytes, that requests for large tables, lists and bodies may use together; "
        "further ones wait and are then answered 503.",
    )
    max_sending_bytes: int = Field(
        256 * 1024 * 1024,
        ge=16 * 1024 * 1024,
        description="Memory, in bytes, of large responses that clients have not read yet; beyond it, new requests are "
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
        description="Memory, in bytes, for the larger bodies of all requests in progress, including uncompressed "
        "copies; "
        "at least twice `max_body_bytes`.",
    )
    repeated_requests_bytes: int = Field(
        16 * 1024 * 1024,
        ge=0,
        description="Memory, in bytes, for reads that came more than once, with their answers: one that comes again is "
        "not read again, and its answer is not built again while nothing has changed. Tokens are not kept. Processes "
        "share it, and one caller's requests take at most `caller_share_percent` of it.",
    )
    queue: int = Field(256, ge=1, le=10000, description="Requests that may wait for a thread.")
    queue_timeout_s: float = Field(20, ge=0.1, le=600, description="Seconds that a request may wait for a thread.")
    caller_share_percent: int = Field(
        75,
        ge=1,
        le=100,
        description="Largest share of threads, queue, and memory for bodies and responses that one caller may use; the "
        "rest stays free for others.",
    )
    verification_threads: int = Field(
        8, ge=1, le=256, description="Threads that verify tokens which the process has not verified before."
    )
    max_connections: int = Field(1000, ge=1, le=100000, description="Connections that may be open at once.")
    header_timeout_s: float = Field(
        10, ge=0.1, le=600, description="Seconds in which the headers of a request must have arrived."
    )
    body_timeout_s: float = Field(
        20,
        ge=0.1,
        le=600,
        description="Seconds in which a body must have arrived, plus one for each `min_bytes_per_s` of it.",
    )
    min_bytes_per_s: int = Field(64 * 1024, ge=1024, description="Lowest speed of a larger body, in bytes per second.")
    write_timeout_s: float = Field(
        30, ge=0.1, le=600, description="Seconds after which a client that does not read its response is disconnected."
    )
    keep_alive_timeout_s: int = Field(
        75, ge=1, le=3600, description="Seconds for which a connection without a request stays open."
    )
    stop_timeout_s: float = Field(
        25,
        ge=0,
        le=3600,
        description="Seconds for requests in progress to end after TERM; the process ends at most 4 seconds later.",
    )
    hang_timeout_s: float = Field(
        30,
        ge=1,
        le=3600,
        description="Seconds without a heartbeat after which one of several processes is killed and replaced.",
    )
    cors_origins: Origins = Field(
        (), description="Origins whose pages may call the API from a browser; `*`: all, empty: none."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.bodies_in_flight_bytes < 2 * self.max_body_bytes:
            raise ValueError(
                f"bodies_in_flight_bytes is {self.bodies_in_flight_bytes}: at least twice max_body_bytes is needed"
            )
        processes = self.processes or 1
        if processes > 1 and self.threads < THREADS_OF_A_PROCESS * processes:
            raise ValueError(
                f"processes is {processes} and threads is {self.threads}: each process needs {THREADS_OF_A_PROCESS} "
                f"threads, so set threads to {THREADS_OF_A_PROCESS * processes} or more"
            )
        return self
