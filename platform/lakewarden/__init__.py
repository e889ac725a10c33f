"""Lakewarden: the Django project and the kernel that the apps stand on."""

__version__ = "0.1.0"
