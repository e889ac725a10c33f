"""Request and answer shapes in the API's spelling: kebab-case members from underscored fields."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, ClassVar, Final, Self

from rest_framework import serializers

from lakewarden.errors import BadRequest

_MOST_ENTRIES: Final = 10_000  # of any list; most take less
_MOST_PROBLEMS: Final = 10  # that are told of one body


class Kebab(serializers.Serializer[Any]):
    """A serializer whose field `project_id` is the member `project-id`."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        fields = {}
        for name, field in super().get_fields().items():
            if "_" in name and field.source is None:
                field.source = name
            _say_choices(field)
            fields[name.replace("_", "-")] = field
        return fields


class Shape(Kebab):
    """An answer. What is unknown (None) is left out, as the reference does it; such a field says `required=False`."""

    @classmethod
    def of(cls, value: object) -> dict[str, Any]:
        return dict(cls(value).data)

    def to_representation(self, instance: object) -> dict[str, Any]:
        plain = super().to_representation(instance)
        return {name: value for name, value in plain.items() if value is not None}


class Body(Kebab):
    """A request's body.

    A member that the API does not know is refused, because a misspelt one would silently fall back to a default;
    null stands for "not given". `not_served` maps members of the reference API that this server does not act upon
    yet to the value that asks for nothing; any other value is refused instead of being ignored.
    """

    not_served: ClassVar[Mapping[str, object]] = {}

    @classmethod
    def parse(cls, members: Mapping[str, Any]) -> Self:
        """The validated body. Raises BadRequest that names the first wrong member."""
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
            told = "; ".join(islice(_problems(body.errors), _MOST_PROBLEMS))
            raise BadRequest(f"Invalid request body: {told}")
        return body

    def get(self, field: str, default: Any = None) -> Any:  # noqa: ANN401 whatever the field holds
        """A validated value by its underscored name."""
        return self.validated_data.get(field, default)


def _ensure_short(value: object, name: str) -> None:
    """Each entry of a list costs far more to validate than to send. Raises BadRequest for a list that is too long."""
    if not isinstance(value, list | dict):
        return
    if isinstance(value, list) and len(value) > _MOST_ENTRIES:
        raise BadRequest(
            f"Invalid request body: {name} has {len(value)} entries, and at most {_MOST_ENTRIES} are allowed"
        )
    for each in value.values() if isinstance(value, dict) else value:
        _ensure_short(each, name)


def _say_choices(field: Any) -> None:  # noqa: ANN401 DRF's fields of every kind
    """What is wrong with a choice says what would be right."""
    choice = getattr(field, "child", field)
    if isinstance(choice, serializers.ChoiceField):
        known = ", ".join(map(str, choice.choices))
        choice.error_messages["invalid_choice"] = f"{{input!r:.80}} is not known: one of {known} is expected"


def _hint(name: str, known: Mapping[str, object]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"


def _problems(errors: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401 DRF nests lists and dicts freely
    """DRF's nested errors as `member: what is wrong`; the faults of a list are keyed by their index."""
    if isinstance(errors, Mapping):
        for key, inner in errors.items():
            step = f"[{key}]" if isinstance(key, int) else f".{key}"
            yield from _problems(inner, path if key == "non_field_errors" else f"{path}{step}".lstrip("."))
    else:
        text = " ".join(map(str, errors))
        yield f"{path}: {text}" if path else text
