"""For the isolation of tenants: `world` has two projects, and is shared by tests that change nothing.

`fresh_world` is one of its own for a test that does change something.
"""

from tests.integration.isolation.worlds import fresh_world, world

__all__ = ["fresh_world", "world"]
