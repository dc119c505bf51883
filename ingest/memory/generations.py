"""A bounded cache in two generations: entries that were not asked for during a whole generation are dropped."""

from __future__ import annotations

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Generations(Generic[Key, Value]):
    """At most about twice `size` entries. `young` and `old` may be used directly where a call would cost too much: an
    entry of `old` that was asked for belongs into `young`.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self.young: dict[Key, Value] = {}
        self.old: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        found = self.young.get(key)
        return self.recall(key) if found is None else found

    def recall(self, key: Key) -> Value | None:
        """An entry that is not among the young; it belongs there from now on."""
        found = self.old.get(key)
        if found is not None:
            self.young[key] = found
        return found

    def put(self, key: Key, value: Value) -> None:
        self.young[key] = value

    def age(self) -> None:
        """Begin a new generation, if it is time. Only between commits: unwritten entries must stay."""
        if len(self.young) > self._size:
            self.old = self.young
            self.young = {}
