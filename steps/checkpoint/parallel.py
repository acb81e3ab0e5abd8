"""Many store requests at once, few without a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_parallel(
    function: Callable[[_Item], _Result], items: Iterable[_Item], *, threads: int, small: int = 1
) -> list[_Result]:
    """Results in the order of ``items``; the first error is raised. Up to ``small`` items are not worth a thread."""
    todo = list(items)
    if len(todo) <= small:
        return [function(item) for item in todo]
    with ThreadPoolExecutor(min(threads, len(todo))) as pool:
        return list(pool.map(function, todo))
