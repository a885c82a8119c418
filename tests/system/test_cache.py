"""A cache that is bounded by bytes."""

import pytest

from assay.system.cache import cached_within


def caching(limit, size=lambda value, key: len(value)):
    calls = []

    @cached_within(limit, size)
    def ask(key):
        calls.append(key)
        return key * 10

    return ask, calls


def test_what_is_known_is_not_computed_again():
    ask, calls = caching(10_000)
    assert [ask("a"), ask("b"), ask("a")] == ["a" * 10, "b" * 10, "a" * 10]
    assert calls == ["a", "b"]


def test_what_was_not_asked_for_the_longest_is_given_up_first():
    ask, calls = caching(450)
    for key in "abacab":
        ask(key)
    assert calls == ["a", "b", "c", "b"]
    assert ask.cache_bytes() <= 450


def test_what_is_larger_than_the_cache_is_not_kept():
    ask, calls = caching(1_000)
    ask("a")
    ask("x" * 500)
    ask("x" * 500)
    ask("a")
    assert calls == ["a", "x" * 500, "x" * 500]
    ask.cache_clear()
    assert ask.cache_bytes() == 0


def test_what_is_raised_is_not_kept():
    calls = []

    @cached_within(1_000, lambda _, key: 1)
    def fail(key):
        calls.append(key)
        raise ValueError(key)

    for _ in range(2):
        with pytest.raises(ValueError, match="a"):
            fail("a")
    assert calls == ["a", "a"]
