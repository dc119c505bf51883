"""The order of the machine's boots."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawler.observe.boots import BootOrder


@given(st.lists(st.frozensets(st.integers(0, 5)), max_size=4), st.permutations(range(6)))
def test_only_an_order_that_the_spools_show_is_certain(writers: list[frozenset[int]], clock: list[int]) -> None:
    """Boots 0, 1, 2, … came one after the other; each writer was at work in some of them; the wall clock says
    whatever it likes."""
    boots = sorted(frozenset().union(*writers))
    orders = [[str(boot) for boot in sorted(writer)] for writer in writers]
    order = BootOrder(orders, {str(boot): str(clock[boot]) for boot in boots})
    ranks = {boot: order.rank(str(boot)) for boot in boots}
    assert sorted(ranks.values()) == list(range(len(boots)))
    for boot in boots:
        for other in boots:
            is_shown = any({boot, other} <= writer for writer in writers)
            if other > boot and (is_shown or order.certain & {ranks[boot], ranks[other]}):
                assert ranks[other] > ranks[boot]
    for writer in writers:
        if writer == set(boots):
            assert order.certain == set(range(len(boots)))


def test_boots_that_take_turns_have_no_order() -> None:
    """A workspace on a disk that is carried between two machines."""
    order = BootOrder([["a", "b", "a", "c"]], {"a": "1", "b": "2", "c": "0"})
    assert order.certain == {2}
    assert order.rank("c") == 2
