"""A bounded cache in two generations."""

from __future__ import annotations

from ingest.memory.generations import Generations


def test_an_entry_lives_as_long_as_it_is_asked_for() -> None:
    cache: Generations[int, str] = Generations(2)
    for number in range(100):
        cache.put(number, str(number))
        assert cache.get(0) == "0"
        cache.age()
    assert cache.get(1) is None
    assert cache.get(99) == "99"


def test_there_are_never_many_more_than_two_generations() -> None:
    cache: Generations[int, str] = Generations(10)
    for number in range(1000):
        cache.put(number, "")
        cache.age()
    assert sum(cache.get(number) is not None for number in range(1000)) <= 22


def test_nothing_is_dropped_between_two_agings() -> None:
    cache: Generations[int, str] = Generations(1)
    for number in range(50):
        cache.put(number, "")
    assert all(cache.get(number) is not None for number in range(50))
