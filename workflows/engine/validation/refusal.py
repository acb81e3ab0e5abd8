"""What Argo refuses, gathered so that one answer names everything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Refused(Exception):
    """Argo refuses the workflow; the text says where, what and by which rule."""


PLACEHOLDER = "__argo__internal__placeholder-"
STAND_IN = re.compile(re.escape(PLACEHOLDER) + r"\d+")
"""What stands for a value that is known only when the workflow runs; Argo's own, as its rules look for it."""


@dataclass
class Refusals:
    """Texts of what is refused, each once, in the order in which it was met."""

    texts: list[str] = field(default_factory=list)

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Note a refusal within and go on after it: the rest may have mistakes of its own."""
        try:
            yield
        except Refused as refused:
            self.add(str(refused))

    def add(self, text: str) -> None:
        """Note one; what stands in for a value that only the run knows is shown as such."""
        text = STAND_IN.sub("{{…}}", text)
        if text not in self.texts:
            self.texts.append(text)
