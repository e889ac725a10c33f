"""Lakewarden: the Django project, and the kernel that all apps use."""

__version__ = "0.1.0"
