from lakewarden.authn.token_cache import TokenCache


def test_cache_forgets_the_least_recently_used_entry() -> None:
    cache: TokenCache[str] = TokenCache(capacity=2)
    cache.put(b"1", "one")
    cache.put(b"2", "two")
    assert cache.find(b"1") == "one"

    cache.put(b"3", "three")

    assert (cache.find(b"1"), cache.find(b"2"), cache.find(b"3")) == ("one", None, "three")
    assert len(cache) == 2


def test_cache_discards_one_entry() -> None:
    cache: TokenCache[str] = TokenCache(capacity=2)
    cache.put(b"1", "one")
    cache.discard(b"1")
    cache.discard(b"never there")

    assert len(cache) == 0
