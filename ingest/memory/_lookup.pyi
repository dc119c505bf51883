from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from crawler.model.urls import Address, Link

Target = TypeVar("Target")

CONTRACT: int

def slot(slots: array[int], hashes: array[int], hash_: int, /) -> int: ...
def fill(slots: array[int], hashes: array[int], /) -> None: ...
def hash64(text: str, /) -> int: ...
def resolve(
    hrefs: Sequence[str],
    base: tuple[str, str, str],
    young: dict[Address, int],
    old: dict[Address, int],
    new: dict[Address, Target],
    sites: Mapping[str, tuple[str, str, str]],
    longest: int,
    remembered: int,
    table: tuple[array[int], array[int], array[int], list[str]],
    link: type[Link],
    target: Callable[[Link], Target],
    /,
) -> tuple[list[int | None], dict[int, Target], list[int]]: ...
