"""A data contract as it is set and stored. No I/O."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from catalog.iceberg.transforms import transform
from lakewarden import config
from lakewarden.errors import BadRequest, LakewardenError

Mode = Literal["none", "backward", "forward", "full"]
Text = Annotated[str, Meta(min_length=1, max_length=1000)]
COMMENT: Final = "comment"
"""The property that documents a table or view, as engines write it."""
LONGEST: Final = 64 * 1024
"""Bytes of JSON: each event about a contract has it twice."""
_VERIFIER: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class _Strict(msgspec.Struct, rename="kebab", forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    pass


class RequiredDocs(_Strict, frozen=True):
    """`table`: the property `comment`, of a view as well; `columns`: the `doc` of each column, nested ones too."""

    table: bool = False
    columns: bool = False


class LaidOutField(_Strict, frozen=True):
    """A field of a partition spec or sort order, by its column's full name; without `transform`, any will do."""

    source: Text
    transform: Text | None = None

    def __str__(self) -> str:
        return self.source if self.transform is None else f"{self.transform}({self.source})"


class Verifier(_Strict, frozen=True):
    """A verifier of the configuration. `on_failure`: what becomes of a change if it does not answer."""

    name: Text
    on_failure: Literal["deny", "allow"] = "deny"
    asked_about: Literal["every-change", "changes-of-definition"] = "every-change"


class Contract(_Strict, frozen=True):
    schema_compatibility: Mode = "none"
    protected_columns: tuple[Text, ...] = ()
    required_docs: RequiredDocs = RequiredDocs()
    required_properties: tuple[Text, ...] = ()
    forbidden_properties: tuple[Text, ...] = ()
    fixed_properties: dict[Text, Annotated[str, Meta(max_length=10_000)]] = {}
    required_partition_fields: tuple[LaidOutField, ...] = ()
    required_sort_fields: tuple[LaidOutField, ...] = ()
    verifier: Verifier | None = None

    @property
    def stored(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


def parse(members: Mapping[str, Any]) -> Contract:
    """Raises BadRequest, which names the member and what is right."""
    try:
        found = msgspec.convert(dict(members), Contract)
    except msgspec.ValidationError as error:
        raise BadRequest(f"Invalid data contract: {_shown(str(error))}") from error
    if (size := len(msgspec.json.encode(found))) > LONGEST:
        raise BadRequest(f"Invalid data contract: it has {size} bytes of JSON, at most {LONGEST} are allowed")
    _check_lists(found)
    for name in ("required_partition_fields", "required_sort_fields"):
        for each in getattr(found, name):
            _check_transform(name, each)
    if found.verifier is not None:
        _check_verifier(found.verifier)
    if not found.stored:
        raise BadRequest(
            "Invalid data contract: it has no rule; known are "
            f"{', '.join(sorted(Contract.__struct_encode_fields__))}. To remove a contract, delete it"
        )
    return found


def _shown(message: str) -> str:
    """The message of msgspec with its path of a member as users write it."""
    return message.replace("`$.", "`").replace("`$`", "the contract").replace(" - at ", ", in ")


def _check_lists(contract: Contract) -> None:
    most = config.current().contracts.max_entries
    for name in contract.__struct_fields__:
        value = getattr(contract, name)
        if not isinstance(value, tuple | dict):
            continue
        shown = name.replace("_", "-")
        if len(value) > most:
            raise BadRequest(
                f"Invalid data contract: {shown} has {len(value)} entries, at most {most} are allowed "
                "(contracts.max_entries)"
            )
        for each in (*value, *(value.values() if isinstance(value, dict) else ())):
            if "\x00" in str(each) or not _is_text(str(each)):
                raise BadRequest(f"Invalid data contract: {shown} contains {each!r}, which cannot be stored")


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _check_transform(name: str, field: LaidOutField) -> None:
    if field.transform is None:
        return
    shown = name.replace("_", "-")
    try:
        found = transform(field.transform)
    except LakewardenError as error:
        raise BadRequest(f"Invalid data contract: {shown}: {error.message}") from error
    if not found.name or found.is_void:
        raise BadRequest(
            f"Invalid data contract: {shown}: {field.transform[:80]!r} is not a known transform: identity, year, "
            "month, day, hour, bucket[N] and truncate[W] are"
        )


def _check_verifier(verifier: Verifier) -> None:
    known = config.current().contracts.verifiers
    if not _VERIFIER.fullmatch(verifier.name) or verifier.name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise BadRequest(
            f"Invalid data contract: verifier.name {verifier.name[:80]!r} is not configured on this server; "
            f"configured: {names} (contracts.verifiers)"
        )
