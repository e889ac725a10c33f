"""Base classes of request and response bodies; a field `project_id` is the member `project-id`."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from difflib import get_close_matches
from itertools import islice
from typing import Any, ClassVar, Final, Self

from rest_framework import serializers

from lakewarden.errors import BadRequest

_MOST_ENTRIES: Final = 10_000  # in any list; most lists allow fewer
_MOST_PROBLEMS: Final = 10  # listed in the error for one body


class Kebab(serializers.Serializer[Any]):
    """A serializer that writes names of fields in kebab case; those of `also_in_snake_case` both ways."""

    also_in_snake_case: ClassVar[frozenset[str]] = frozenset()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = {}
        for name, field in super().get_fields().items():
            if "_" in name and field.source is None:
                field.source = name
            _say_choices(field)
            fields[name.replace("_", "-")] = field
            if name in self.also_in_snake_case:
                fields[name] = deepcopy(field)
        return fields


class Shape(Kebab):
    """A response body. Members that are None are omitted; such fields are declared with `required=False`."""

    @classmethod
    def of(cls, value: object) -> dict[str, Any]:
        return dict(cls(value).data)

    def to_representation(self, instance: object) -> dict[str, Any]:
        plain = super().to_representation(instance)
        return {name: value for name, value in plain.items() if value is not None}


class Body(Kebab):
    """A request body.

    Unknown members are refused, because a misspelt one would silently get its default; null means "not given".
    `not_served` maps members of the compatible API that this server does not support yet to the value that has no
    effect; any other value is refused instead of being ignored.
    """

    not_served: ClassVar[Mapping[str, object]] = {}

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = super().get_fields()
        for field in fields.values():
            _refuse_words(field)
        return fields

    @classmethod
    def parse(cls, members: Mapping[str, Any]) -> Self:
        """The validated body. Raises BadRequest, which names the invalid members."""
        given = {name: value for name, value in members.items() if value is not None}
        for name, value in given.items():
            _ensure_short(value, name[:80])
        body = cls(data={name: value for name, value in given.items() if name not in cls.not_served})
        for name, value in given.items():
            if name in cls.not_served:
                if value != cls.not_served[name]:
                    raise BadRequest(f"Invalid request body: {name!r} is not supported by this server yet: omit it")
            elif name not in body.fields:
                shown = name[:80]
                raise BadRequest(f"Invalid request body: unknown member {shown!r}{_hint(shown, body.fields)}")
        if not body.is_valid():
            problems = "; ".join(islice(_problems(body.errors), _MOST_PROBLEMS))
            raise BadRequest(f"Invalid request body: {problems}")
        return body

    def get(self, field: str, default: Any = None) -> Any:  # noqa: ANN401 whatever the field holds
        """The validated value of a field, by the field's name."""
        return self.validated_data.get(field, default)


def _ensure_short(value: object, name: str) -> None:
    """Raises BadRequest for a list that is too long: validating an entry costs far more than sending it."""
    if not isinstance(value, list | dict):
        return
    if isinstance(value, list) and len(value) > _MOST_ENTRIES:
        raise BadRequest(
            f"Invalid request body: {name} has {len(value)} entries, and at most {_MOST_ENTRIES} are allowed"
        )
    for each in value.values() if isinstance(value, dict) else value:
        _ensure_short(each, name)


def _refuse_words(field: Any) -> None:  # noqa: ANN401 DRF's fields of every kind
    """Make a boolean take JSON's `true` and `false` alone: DRF reads words such as "no" and "off", too."""
    if isinstance(field, serializers.BooleanField):
        field.TRUE_VALUES, field.FALSE_VALUES = {True}, {False}
        field.error_messages["invalid"] = "true or false is expected"


def _say_choices(field: Any) -> None:  # noqa: ANN401 DRF's fields of every kind
    """Make the error for an invalid choice list the valid ones."""
    choice = getattr(field, "child", field)
    if isinstance(choice, serializers.ChoiceField):
        known = ", ".join(map(str, choice.choices))
        choice.error_messages["invalid_choice"] = f"{{input!r:.80}} is not known: one of {known} is expected"


def _hint(name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"


def _problems(errors: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 DRF nests lists and dicts freely
    """DRF's nested errors as `member: problem`; entries of a list are named by their index."""
    if isinstance(errors, Mapping):
        for key, inner in errors.items():
            step = f"[{key}]" if isinstance(key, int) else f".{key}"
            yield from _problems(inner, path if key == "non_field_errors" else f"{path}{step}".lstrip("."))
    else:
        text = " ".join(map(str, errors)).removesuffix(".")
        yield f"{path}: {text}" if path else text
