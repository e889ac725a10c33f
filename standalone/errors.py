"""The error of everything in this package; the command line prints its message and exits with 1."""

from lakewarden.errors import LakewardenError


class EmbeddedError(LakewardenError):
    """A server cannot start or has died; `message` says why, with which value, and what to do."""
