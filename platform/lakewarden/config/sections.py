"""The base class and value types of the configuration's sections."""

import json
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr


def _split(value: object) -> object:
    """Accept `a,b` for lists, because environment variables have no lists."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _parse(value: object) -> object:
    """Accept JSON, because environment variables have no objects, and names in them may have dots."""
    return json.loads(value) if isinstance(value, str) else value


def _http(value: str) -> str:
    if not re.match(r"https?://[^/?#\s]+\S*\Z", value):
        raise ValueError("must be an http or https address, for example https://id.example.org")
    return value


Names = Annotated[tuple[str, ...], BeforeValidator(_split)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_split)]
JsonObject = BeforeValidator(_parse)
Properties = Annotated[dict[str, str], JsonObject]
HttpUri = Annotated[str, AfterValidator(_http)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EngineSection(Section):
    """Settings of a part that is a client of the catalog, as every engine is, and logs in with OAuth2."""

    catalog_uri: HttpUri | None = Field(
        None, description="Address of the catalog, without `/v1`, e.g. https://lake.example.org/catalog."
    )
    oauth2_server_uri: HttpUri | None = Field(
        None, description="Token endpoint at which it logs in with client credentials."
    )
    client_id: str | None = Field(None, description="Its OAuth2 client.")
    client_secret: SecretStr | None = Field(None, description="The secret of its OAuth2 client.")
    scope: str = Field("catalog", description="Scope that it asks for.")

    @property
    def unset(self) -> tuple[str, ...]:
        """Names of the settings without which it cannot log in."""
        needed = ("catalog_uri", "oauth2_server_uri", "client_id", "client_secret")
        return tuple(name for name in needed if getattr(self, name) is None)

    @property
    def credential(self) -> str:
        """Client and secret, as Iceberg's clients want them."""
        return f"{self.client_id}:{self.client_secret.get_secret_value() if self.client_secret else ''}"
