"""What the wire carries: one request and its answer, asked again until it is done or given up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

from argosy.steps.store.base import StoreError
from argosy.steps.transfer.answers import Head

if TYPE_CHECKING:
    from argosy.steps.transfer.library_signing import LibraryRequest


Request: TypeAlias = "bytes | LibraryRequest"
"""As the connection takes it."""


class Again(Exception):
    """The request must be asked again.

    ``why`` is reported when there is no more time. ``at_once``: nothing has to pass first (new keys, another host).
    ``throttled``: the store asked for fewer requests. ``elsewhere``: not over the same connection.
    """

    def __init__(
        self, why: StoreError, *, at_once: bool = False, throttled: bool = False, elsewhere: bool = False
    ) -> None:
        super().__init__(str(why))
        self.why, self.at_once, self.throttled, self.elsewhere = why, at_once, throttled, elsewhere


class Job(ABC):
    """See :class:`argosy.steps.transfer.loop.Loop` for the order of the calls."""

    method = "GET"
    tries = 0
    failing_since = 0.0
    """When the first of the tries that came to nothing failed; 0: it goes well."""

    surprises = 0
    """How often what came was no HTTP."""

    @abstractmethod
    def begin(self) -> Request:
        """The request, each time it is asked."""

    @abstractmethod
    def head(self, head: Head) -> None:
        """The answer's head."""

    @abstractmethod
    def body(self, data: memoryview) -> None:
        """Some of the answer's body."""

    @abstractmethod
    def finish(self) -> int:
        """The answer is whole: done, with so many bytes. Raises Again or StoreError if it is no good."""

    @abstractmethod
    def broken(self, error: Exception) -> StoreError:
        """The answer did not come, or not all of it: what is said if it never does."""

    @abstractmethod
    def fail(self, error: StoreError) -> None:
        """Given up."""
