import pytest
from rest_framework import serializers

from lakewarden.errors import BadRequest
from management.base_serializers import Body, Shape


class Inner(serializers.Serializer[object]):
    size = serializers.IntegerField()


class Order(Body):
    not_served = {"gift-wrap": False}

    item_name = serializers.CharField()
    count = serializers.IntegerField(default=1)
    parts = Inner(many=True, default=list)
    colour = serializers.ChoiceField(choices=["red", "blue"], required=False)
    sizes = serializers.ListField(child=serializers.ChoiceField(choices=["s", "m"]), required=False)


class Told(Shape):
    item_name = serializers.CharField()
    item_id = serializers.CharField(source="item_name")
    sold_at = serializers.DateTimeField()


def test_members_are_kebab_case_and_fields_underscored() -> None:
    body = Order.parse({"item-name": "a"})
    assert (body.get("item_name"), body.get("count"), body.get("parts")) == ("a", 1, [])


def test_an_answer_is_kebab_case_without_what_is_unknown() -> None:
    assert Told.of({"item_name": "a", "sold_at": None}) == {"item-name": "a", "item-id": "a"}


def test_null_is_the_same_as_not_given() -> None:
    assert Order.parse({"item-name": "a", "count": None, "gift-wrap": None}).get("count") == 1


def test_a_member_that_is_not_served_may_say_nothing_only() -> None:
    assert Order.parse({"item-name": "a", "gift-wrap": False}).get("item_name") == "a"
    with pytest.raises(BadRequest, match="'gift-wrap' is not supported"):
        Order.parse({"item-name": "a", "gift-wrap": True})


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"item_name": "a"}, "unknown member 'item_name'; did you mean 'item-name'"),
        ({"item-name": "a", "zzz": 1}, "unknown member 'zzz'; known are item-name, count, parts, colour, sizes"),
        ({}, "item-name: This field is required$"),
        ({"item-name": "a", "count": "many"}, "count: A valid integer is required"),
        ({"item-name": "a", "parts": [{"size": 1}, {"size": "x"}]}, r"parts\[1\].size: A valid integer"),
        ({"item-name": "a", "parts": 3}, "parts: Expected a list"),
        ({"count": "many"}, "item-name: This field is required; count: A valid integer is required$"),
        ({"item-name": "a", "colour": "green"}, "colour: 'green' is not known: one of red, blue is expected"),
        ({"item-name": "a", "sizes": ["s", "{x}"]}, r"sizes\[1\]: '{x}' is not known: one of s, m is expected"),
    ],
)
def test_a_wrong_member_is_named(members: dict[str, object], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        Order.parse(members)


def test_a_very_long_unknown_member_is_cut() -> None:
    with pytest.raises(BadRequest) as refused:
        Order.parse({"z" * 1_000_000: 1})
    assert len(refused.value.message) < 200
