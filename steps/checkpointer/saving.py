"""What ``save`` gives back: a handle on a save that goes on in the background."""

from __future__ import annotations

from collections.abc import Callable

from argosy.steps.checkpoint.manifest import Saved


class Saving:
    """A save that has been handed over; the attributes of :class:`Saved` (``digest``, ``bytes`` …) wait for it."""

    def __init__(self, ask: Callable[[bool], Saved | None]) -> None:
        """``ask(wait)``: what was saved, or None when that is not known and ``wait`` is False."""
        self._ask = ask
        self._saved: Saved | None = None

    def done(self) -> bool:
        """Whether it is durable and committed. Neither waits nor raises."""
        self._saved = self._saved or self._ask(False)
        return self._saved is not None

    def wait(self) -> Saved:
        """Wait until it is durable and committed.

        Raises:
            Stopped: it is not, and the training has to end; on every rank.
        """
        self._saved = self._saved or self._ask(True)
        assert self._saved is not None
        return self._saved

    @property
    def step(self) -> int:
        """The step that is saved."""
        return self.wait().step

    @property
    def digest(self) -> str:
        """SHA-256 of the checkpoint's root manifest."""
        return self.wait().digest

    @property
    def bytes(self) -> int:
        """Size of all files of all ranks."""
        return self.wait().bytes

    @property
    def final(self) -> bool:
        """Whether it is the training's result."""
        return self.wait().final

    @property
    def generation(self) -> int:
        """The claim under which it was committed."""
        return self.wait().generation
