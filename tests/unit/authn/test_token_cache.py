from lakewarden.authn.token_cache import TokenCache


def test_cache_forgets_the_least_recently_used_entry() -> None:
    cache: TokenCache[str] = TokenCache(capacity=2)
    cache.put(b"1", "one", generation=0)
    cache.put(b"2", "two", generation=0)
    assert cache.find(b"1") == "one"

    cache.put(b"3", "three", generation=0)

    assert (cache.find(b"1"), cache.find(b"2"), cache.find(b"3")) == ("one", None, "three")
    assert len(cache) == 2


def test_cache_refuses_an_entry_proved_before_it_was_cleared() -> None:
    cache: TokenCache[str] = TokenCache(capacity=2)
    generation = cache.generation
    cache.clear()

    cache.put(b"1", "stale", generation=generation)

    assert cache.find(b"1") is None


def test_cache_discards_one_entry() -> None:
    cache: TokenCache[str] = TokenCache(capacity=2)
    cache.put(b"1", "one", generation=0)
    cache.discard(b"1")
    cache.discard(b"never there")

    assert len(cache) == 0
