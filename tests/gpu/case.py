"""A case of a part: what it is given, and how it says what it finds.

Figures are said at once, a line each, so that a crash or the time limit loses only what was not measured.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIGURE = "@figure "
SKIPPED = 3
"""Exit code of a case that says itself that it cannot run here."""


class Skipped(Exception):
    """This machine lacks what the case needs; the reason is its text."""


@dataclass(frozen=True)
class Part:
    """Cases by name. ``seconds``: the limit of each. ``cpu``: whether a stand-in runs without a GPU. ``beside``: those
    that time nothing and leave room on the GPU, so that others may run at the same time. ``disk``: those whose figures
    need one; the others write to memory, since a lent machine's disk may take a second for a flush.
    """

    cases: dict[str, Callable[[Case], None]]
    seconds: int
    cpu: bool = True
    beside: frozenset[str] = frozenset()
    disk: frozenset[str] = frozenset()


@dataclass
class Case:
    """What a case is given. ``device``: cuda or cpu; without a GPU all sizes and counts are a stand-in's.

    Nothing here may make a CUDA context: some cases fork.
    """

    name: str
    device: str
    folder: Path
    seconds: float
    known: dict[str, Any] = field(default_factory=dict)
    """Figures of the part's earlier cases, by name."""
    began: float = field(default_factory=time.monotonic)

    @property
    def cuda(self) -> bool:
        return self.device == "cuda"

    @property
    def left(self) -> float:
        """Seconds before it is ended from outside, with a margin to say what it has."""
        return self.began + self.seconds - time.monotonic() - 10

    def pick(self, gpu: Any, stand_in: Any) -> Any:
        """A size or a count."""
        return gpu if self.cuda else stand_in

    def figure(self, what: str, value: Any, unit: str = "", *, bar: str = "", held: bool | None = None) -> None:
        """Say a finding. ``bar``: what it must be, in words; ``held``: whether it is."""
        found = {"what": what, "value": value, "unit": unit, "bar": bar, "held": held}
        print(FIGURE + json.dumps({key: given for key, given in found.items() if given not in ("", None)}), flush=True)

    def keep(self, file: str, found: Any) -> None:
        """Add ``found`` under the case's name to a JSON file of the results; cases that run beside it may do so too."""
        path = Path(os.environ.get("ARGOSY_GPU_RESULTS", self.folder)) / file
        with path.open("a+") as target:
            fcntl.flock(target, fcntl.LOCK_EX)
            target.seek(0)
            known = json.loads(target.read() or "{}")
            target.truncate(0)
            target.write(json.dumps({**known, self.name: found}, indent=1) + "\n")

    def say(self, text: str) -> None:
        """Progress."""
        print(f"{text} ({time.monotonic() - self.began:.0f} s)", flush=True)


def part(name: str) -> Part:
    """The part of that name."""
    found = importlib.import_module(f"tests.gpu.{name}").PART
    assert isinstance(found, Part)
    return found
