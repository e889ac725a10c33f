"""The storage profiles that this server knows, as the management API writes them: a union tagged by `type`."""

from typing import Final

from pydantic import ValidationError

from lakewarden.errors import BadRequest
from lakewarden.storage.adls.profile import AdlsProfile
from lakewarden.storage.credential import first_problem
from lakewarden.storage.gcs.profile import GcsProfile
from lakewarden.storage.local_profile import LocalProfile
from lakewarden.storage.profile import StorageProfile
from lakewarden.storage.s3.profile import S3Profile

PROFILES: Final[dict[str, type[StorageProfile]]] = {
    "local": LocalProfile,
    "s3": S3Profile,
    "adls": AdlsProfile,
    "gcs": GcsProfile,
}


def parse_profile(value: object) -> StorageProfile:
    """Raises BadRequest that names the wrong field, or lists the types that are known."""
    kind = value.get("type") if isinstance(value, dict) else value
    shape = PROFILES.get(kind) if isinstance(kind, str) else None
    if kind is None:
        raise BadRequest(f"Invalid storage profile: type is missing: one of {', '.join(sorted(PROFILES))} is expected")
    if shape is None:
        known = ", ".join(repr(name) for name in sorted(PROFILES))
        raise BadRequest(f"Unknown storage profile type {str(kind)[:80]!r}: this server knows {known}")
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        raise BadRequest(f"Invalid storage profile: {first_problem(error)}") from None
