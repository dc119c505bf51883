"""Methods whose engine errors become StoreError."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class _HasErrors(Protocol):
    def errors(self) -> AbstractContextManager[None]: ...


Owner = TypeVar("Owner", bound=_HasErrors)


def raises_store_error(
    method: Callable[Concatenate[Owner, Arguments], Answer],
) -> Callable[Concatenate[Owner, Arguments], Answer]:
    """A method whose engine errors become StoreError. Not for those that are called for every page."""

    @wraps(method)
    def wrapped(owner: Owner, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Answer:
        with owner.errors():
            return method(owner, *arguments, **options)

    return wrapped
