"""Settings of authorization."""

from typing import Literal

from pydantic import Field, SecretStr

from lakewarden.config.sections import HttpUri, Section


class AuthorizationConfig(Section):
    backend: Literal["database", "openfga", "allow-all"] = Field(
        "database",
        description="The authorizer: `database`, `openfga` (which requires `openfga.api_url`), or `allow-all`, which "
        "allows "
        "every caller everything.",
    )

    # only this class may compare the name, which a test checks
    @property
    def by_openfga(self) -> bool:
        return self.backend == "openfga"

    @property
    def is_off(self) -> bool:
        return self.backend == "allow-all"


class OpenFgaConfig(Section):
    """The OpenFGA server that decides when `authorization.backend` is `openfga`."""

    api_url: HttpUri | None = Field(None, description="Address of OpenFGA's HTTP API.")
    api_token: SecretStr | None = Field(None, min_length=1, description="Key (`preshared`) that OpenFGA accepts.")
    store: str = Field(
        "lakewarden",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@-]{2,63}$",
        description="Name of the store in OpenFGA; it is created if it is missing, and must not "
        "belong to another installation.",
    )
    timeout_s: float = Field(
        3,
        ge=1,
        le=60,
        description="Seconds to wait for an answer; not more than OpenFGA's own `--request-timeout` and "
        "`--listObjects-deadline`.",
    )


class RolesConfig(Section):
    max_nesting_depth: int = Field(10, ge=1, le=100, description="Most roles that may be nested in each other.")
