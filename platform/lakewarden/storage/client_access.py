"""What an engine receives to reach the files of one table: settings, and credentials of its own or a signer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class AccessLevel(StrEnum):
    """What an engine may do with the files of one table."""

    READ = "read"
    WRITE = "write"


class Delegation(StrEnum):
    """A mechanism of `X-Iceberg-Access-Delegation` (spec, "data-access")."""

    VENDED_CREDENTIALS = "vended-credentials"
    REMOTE_SIGNING = "remote-signing"
    CLIENT_MANAGED = "client-managed"
    """An extension: the engine has its own keys and only needs to know where the files are."""


@dataclass(frozen=True, slots=True)
class ClientRoutes:
    """Where an engine asks for more: the catalog's URI, and paths below it."""

    catalog_uri: str
    credentials: str
    """Of the table's loadCredentials."""
    sign: str
    """Of the table's signer."""


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """Access to what lies below `location`, and to nothing else.

    `wanted` are the mechanisms that the engine asked for; empty: the server chooses.
    """

    location: str
    level: AccessLevel
    wanted: frozenset[Delegation]
    routes: ClientRoutes


@dataclass(frozen=True, slots=True)
class ClientAccess:
    """`config` holds no secret. `credentials` do, and are valid until `expires_at` (None: there are none).

    Until `fresh_until` further callers may receive the same credentials (None: they must ask again).
    """

    config: Mapping[str, str] = field(default_factory=dict)
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    expires_at: datetime | None = None
    fresh_until: datetime | None = None
