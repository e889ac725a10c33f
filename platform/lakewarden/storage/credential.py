"""The contract of storage credentials: what a server proves with that it may use a warehouse's storage."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from lakewarden.errors import BadRequest


class StorageCredential(BaseModel):
    """A credential of the management API, tagged by `credential-type`; a further kind is a class of its own.

    Secret fields are of the type SecretStr, so that no text of the object shows them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=True)

    FAMILY: ClassVar[str]
    """The `type` of the request: of the cloud."""
    KIND: ClassVar[str]
    """The `credential-type` of the request."""

    def dump(self) -> dict[str, str]:
        """With the secrets in clear: for the secret store only."""
        values = {name: _clear(value) for name, value in self if value is not None}
        return {"type": self.FAMILY, "credential-type": self.KIND} | values


def _clear(value: Any) -> str:  # noqa: ANN401 of any field
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def parse_credential(value: object, kinds: Mapping[str, type[StorageCredential]]) -> StorageCredential:
    """Raises BadRequest that names the wrong field, and never its value."""
    if not isinstance(value, Mapping):
        raise BadRequest("storage-credential: an object is expected")
    kind = value.get("credential-type")
    shape = kinds.get(kind) if isinstance(kind, str) else None
    known = ", ".join(repr(name) for name in sorted(kinds))
    if shape is None:
        raise BadRequest(f"storage-credential: credential-type is one of {known} for this storage")
    if value.get("type", shape.FAMILY) != shape.FAMILY:
        raise BadRequest(f"storage-credential: type is {shape.FAMILY!r} for this storage")
    fields = {name: field for name, field in value.items() if name not in {"type", "credential-type"}}
    try:
        return shape.model_validate(fields)
    except ValidationError as error:
        raise BadRequest(f"storage-credential: {first_problem(error)}") from None


def first_problem(error: ValidationError) -> str:
    """The field and what is wrong with it, without its value."""
    problem = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"{field} is not a known member"
    reason = problem["msg"].removeprefix("Value error, ")
    return f"{field}: {reason}" if field else reason
