"""Reads the configuration from the variables LAKEWARDEN__*."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError

from lakewarden.config.root import Config

PREFIX = "LAKEWARDEN__"


class ConfigError(Exception):
    """The configuration is invalid; the message lists every problem, one in a line."""


def read(environment: Mapping[str, str]) -> Config:
    """Build the configuration from `environment`.

    Raises ConfigError, which names each wrong variable; the message never contains the value of a secret.
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
                raise ConfigError(f"{name} is inside a setting that itself has a value")
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
