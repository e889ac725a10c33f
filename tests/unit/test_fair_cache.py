"""One caller's entries do not push out those of others."""

from lakewarden.fair_cache import FairCache


def test_the_caller_with_the_most_loses_what_was_not_used_for_longest() -> None:
    cache = FairCache[str, int, str](4)
    cache.put("a", 1, "kept")
    for number in range(1, 4):
        cache.put("b", number, str(number))
    assert cache.get("b", 1) == "1"
    for number in range(4, 100):
        cache.put("b", number, str(number))
    assert cache.get("a", 1) == "kept"
    assert [cache.get("b", number) for number in (1, 2, 3, 97, 98, 99)] == [None, None, None, "97", "98", "99"]
    assert len(cache) == 4


def test_others_get_the_room_that_one_has_taken() -> None:
    cache = FairCache[str, int, int](4)
    for number in range(4):
        cache.put("a", number, number)
    for number in range(4):
        cache.put("b", number, number)
    assert [cache.get("a", number) for number in range(4)] == [None, None, None, 3]
    assert [cache.get("b", number) for number in range(4)] == [None, 1, 2, 3]


def test_an_entry_is_replaced_and_removed() -> None:
    cache = FairCache[str, int, int](2)
    cache.put("a", 1, 1)
    cache.put("a", 1, 2)
    assert (len(cache), cache.get("a", 1), cache.get("b", 1)) == (1, 2, None)
    for _ in range(2):
        cache.remove("a", 1)
    assert (len(cache), cache.get("a", 1)) == (0, None)
