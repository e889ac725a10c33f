"""Settings of the web console."""

from typing import Self

from pydantic import Field, SecretStr, model_validator

from lakewarden.config.sections import Section


class ConsoleConfig(Section):
    client_id: str | None = Field(
        None,
        min_length=1,
        description="Client of the console at the identity provider, for the authorization code flow with PKCE; its "
        "redirect URI is `<address of the server>/console/callback`. Without it nobody can sign in.",
    )
    client_secret: SecretStr | None = Field(
        None, min_length=1, description="Secret of that client; a public client has none."
    )
    provider: str | None = Field(
        None,
        min_length=1,
        description="Id of the OpenID provider at which people sign in; needed if there are several.",
    )
    scope: str = Field(
        "openid profile email",
        min_length=1,
        description="Scopes that the console asks for. Some providers issue access tokens for this server only with "
        "a scope of their own, and refresh tokens only with `offline_access`.",
    )
    idle_s: int = Field(
        8 * 3600, ge=60, le=30 * 86400, description="Seconds without a request after which people must sign in again."
    )
    max_session_s: int = Field(
        24 * 3600, ge=60, le=90 * 86400, description="Seconds after which people must sign in again in any case."
    )
    sessions_of_a_user: int = Field(
        20, ge=1, le=1000, description="Most sessions of one user; a further one ends the oldest."
    )
    preview_rows: int = Field(100, ge=1, le=1000, description="Most rows in the preview of a table.")
    preview_columns: int = Field(50, ge=1, le=1000, description="Most columns in the preview of a table.")
    preview_characters: int = Field(
        200, ge=10, le=10_000, description="Most characters of a value in the preview of a table; longer ones are cut."
    )
    preview_s: int = Field(
        20, ge=1, le=60, description="Seconds after which the process that reads the preview of a table is ended."
    )
    preview_memory_mib: int = Field(
        2048, ge=512, le=65_536, description="Most MiB of address space of the process that reads a preview."
    )
    previews_at_once: int = Field(
        2, ge=1, le=64, description="Most previews that one server process reads at the same time."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.client_secret is not None and self.client_id is None:
            raise ValueError("client_secret is set, but client_id is missing: both are of one client")
        return self
