"""Typed configuration from LAKEWARDEN__* variables; settings.py and the commands read it, nothing else the environment.

`LAKEWARDEN__DATABASE__URL` sets `database.url`; names are matched without case. Unknown names and contradictory
values refuse to start.
"""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError, model_validator

PREFIX = "LAKEWARDEN__"


class ConfigError(Exception):
    """The configuration cannot be used; the message lists every problem, one a line."""


def _split(value: object) -> object:
    """Accept `a,b` for lists, as environment variables have no lists."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_split)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerConfig(Section):
    host: str = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8181, ge=0, le=65535, description="Port to listen on.")
    threads: int = Field(16, ge=1, le=256, description="Threads that run requests (and database connections).")
    base_uri: str | None = Field(
        None, description="Address that clients reach the server by, if not the request's own."
    )
    max_body_bytes: int = Field(32 * 1024 * 1024, ge=1024, description="Largest request body accepted, in bytes.")


class DatabaseConfig(Section):
    url: SecretStr | None = Field(None, description="postgresql://user:password@host:port/database")
    connect_timeout_s: int = Field(10, ge=1, description="Seconds to wait for a connection.")


class OidcConfig(Section):
    issuer: str = Field(description="Issuer URL; its discovery document must be below it.")
    audience: Names = Field((), description="Accepted audiences, separated by commas; empty accepts any.")
    additional_issuers: Names = Field((), description="Further values of `iss` that this provider uses.")
    scope: str | None = Field(None, description="A scope that every token must carry.")
    subject_claim: Names = Field(("oid", "sub"), description="Claims that name the user; the first present is taken.")


class AuthorizationConfig(Section):
    backend: Literal["database", "allow-all"] = Field("database", description="Who decides what a caller may do.")


class StorageConfig(Section):
    local_roots: Paths = Field(
        (), description="Directories below which warehouses of type `local` may lie; empty switches them off."
    )


class CatalogConfig(Section):
    metrics_retention_days: int = Field(
        30, ge=1, le=36500, description="Days for which scan and commit reports of engines are kept."
    )


class LakehouseConfig(Section):
    warehouse: str | None = Field(
        None,
        description="Warehouse of `/lakehouse` without `/w/…`, as `<name>` in the default project or "
        "`<project>/<name>`; without it the only one of the default project, or the one named `default`.",
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
    authorization: AuthorizationConfig = Field(default_factory=AuthorizationConfig)
    storage: StorageConfig = Field(default_factory=StorageConfig)
    catalog: CatalogConfig = Field(default_factory=CatalogConfig)
    lakehouse: LakehouseConfig = Field(default_factory=LakehouseConfig)
    log: LogConfig = Field(default_factory=LogConfig)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for provider in self.openid:
            if not provider.replace("-", "").isalnum() or provider != provider.lower():
                raise ValueError(f"openid provider id {provider!r} may hold only a-z, 0-9 and '-'")
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
        reason = "is not a known setting" if problem["type"] == "extra_forbidden" else problem["msg"]
        lines.append(f"{name}: {reason}" if problem["loc"] else problem["msg"])
    return lines


@cache
def current() -> Config:
    """The configuration of this process."""
    return read(os.environ)
