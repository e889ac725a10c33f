"""Why the development issuer does not start; caught by whoever launches it."""

from lakewarden.errors import LakewardenError


class StartRefused(LakewardenError):
    """The issuer must not or cannot start; the sentence says what to change."""
