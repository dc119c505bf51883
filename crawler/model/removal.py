"""PURE. Something that may go because its time is over: what a prune would do, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Removal:
    """One file, or one group of files, of a kind. `why` is a half sentence; `remove` does it, safe to call again.

    `loses`: a sentence about what will not be possible any more; empty: nothing that anybody would miss.
    """

    kind: str
    name: str
    size: int
    why: str
    remove: Callable[[], None] = field(compare=False, repr=False)
    loses: str = ""


@dataclass(frozen=True, slots=True)
class Pruning:
    """What would go, and what stays though its time is over: one sentence for each kind."""

    removals: tuple[Removal, ...] = ()
    stays: tuple[str, ...] = ()

    def __add__(self, other: Pruning) -> Pruning:
        return Pruning(self.removals + other.removals, self.stays + other.stays)
