"""The console's own table."""

from console.models.session import ConsoleSession

__all__ = ["ConsoleSession"]
