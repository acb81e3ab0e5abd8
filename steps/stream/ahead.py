"""Reads ahead of the step: the order is known, so what comes next is asked for before it is needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from argosy.steps.stream.extents import Extent
from argosy.steps.stream.fetcher import Fetch, Fetcher


class Ahead:
    """Groups of samples that are under way, in order.

    Bounded twice: at most ``groups`` of them, and no further one is begun while those that wait take ``most`` bytes
    or more. It is refilled when a group is taken, so a script that stops asking stops the reading.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        order: Iterator[list[int]],
        extents: Callable[[int], list[Extent]],
        *,
        groups: int,
        most: int,
    ) -> None:
        self._fetcher, self._order, self._extents = fetcher, order, extents
        self._groups, self._most = groups, most
        self._waiting: deque[tuple[list[int], Fetch]] = deque()
        self._bytes = 0

    def take(self, samples: list[int]) -> Fetch | None:
        """The next group, if it is these samples; None: the script reads in another order."""
        self._fill()
        if not self._waiting or self._waiting[0][0] != samples:
            return None
        _, fetch = self._waiting.popleft()
        self._bytes -= fetch.size
        self._fill()
        return fetch

    def _fill(self) -> None:
        while len(self._waiting) < self._groups and (self._bytes < self._most or not self._waiting):
            samples = next(self._order, None)
            if samples is None:
                return
            fetch = self._fetcher.begin([extent for number in samples for extent in self._extents(number)])
            self._waiting.append((samples, fetch))
            self._bytes += fetch.size
