"""For every lane: settings come from the tests, never from the shell that started them; one Postgres for all workers."""

import os
from contextlib import ExitStack

import hypothesis
import pytest

from lakewarden import config
from tests.servers import postgres

_at_end = ExitStack()


def _forget_settings_of_the_shell() -> None:
    for name in [name for name in os.environ if name.upper().startswith(config.PREFIX)]:
        del os.environ[name]
    config.current.cache_clear()


_forget_settings_of_the_shell()

# on a machine that is busy with other tests, time says nothing about a test
hypothesis.settings.register_profile("busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("busy")


def pytest_configure(config: pytest.Config) -> None:
    """Start the shared Postgres before pytest-xdist starts its workers, unless only unit tests were asked for."""
    is_controller = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    asks_for_servers = any("tests/unit" not in argument for argument in config.args)
    if is_controller and asks_for_servers and not config.option.collectonly:
        _at_end.enter_context(postgres.shared())


def pytest_unconfigure() -> None:
    _at_end.close()


pytest_plugins = ["tests.installation"]
