"""The line of waiting domains."""

from __future__ import annotations

from crawler.schedule.turns import Turns


def test_turns_go_by_priority_then_by_waiting_time() -> None:
    turns = Turns()
    for name, priority in (("late", 2), ("first", 1), ("second", 1)):
        turns.offer(name, priority)
    served = []
    while (first := turns.first()) is not None:
        served.append(first[1])
        turns.drop(first[1])
        if first[1] == "first" and served.count("first") == 1:
            turns.offer("first", 1)
    assert served == ["first", "second", "first", "late"]


def test_a_better_priority_moves_a_domain_forward_and_a_worse_one_does_not_move_it_back() -> None:
    turns = Turns()
    turns.offer("a", 5)
    turns.offer("b", 4)
    turns.offer("a", 1)
    turns.offer("a", 9)
    assert turns.first() == (1, "a")
    assert len(turns) == 2


def test_the_line_does_not_grow_with_offers() -> None:
    turns = Turns()
    for number in range(10_000):
        turns.offer("a", 10_000 - number)
    assert len(turns._heap) < 200
