"""The error if the development issuer does not start."""

from lakewarden.errors import LakewardenError


class StartRefused(LakewardenError):
    """The issuer must not or cannot start; the message says what to change."""
