"""The base class and value types of the configuration's sections."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict


def _split(value: object) -> object:
    """Accept `a,b` for lists, because environment variables have no lists."""
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
