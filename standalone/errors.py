"""The one error of the embedded parts: a sentence that the command line prints before it exits with 1."""

from lakewarden.errors import LakewardenError


class EmbeddedError(LakewardenError):
    """An embedded part cannot start or has died; `message` says why, with what value, and what to do."""
