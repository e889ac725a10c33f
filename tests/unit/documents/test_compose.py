"""The compose file: its settings are a configuration that the server accepts, and its images are pinned."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewarden.config import read

SERVICES: dict[str, Any] = yaml.safe_load((Path(__file__).parents[3] / "docker" / "compose.yaml").read_text())[
    "services"
]
OWN = sorted(name for name, service in SERVICES.items() if service["image"].startswith("lakewarden"))


@pytest.mark.parametrize("name", OWN)
def test_settings_are_accepted(name: str) -> None:
    settings = read(SERVICES[name]["environment"])
    assert settings.database.url is not None
    assert SERVICES[name]["read_only"] is True


def test_images_are_pinned_to_a_version() -> None:
    assert {"migrate", "server", "worker", "pipeline"} == set(OWN)
    for service in SERVICES.values():
        _, _, tag = service["image"].rpartition(":")
        assert any(each.isdigit() for each in tag)


def test_every_service_that_is_waited_for_exists() -> None:
    for service in SERVICES.values():
        assert set(service.get("depends_on", {})) <= set(SERVICES)
