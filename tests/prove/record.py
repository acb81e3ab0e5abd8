"""Cases that were run, kept so that a suite can go on where it stopped, and shown as a table in docs/."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from argosy.steps.contract.env import S3_TRANSPORT

STYLE = "ARGOSY_PROVE_STYLE"
_Todo = TypeVar("_Todo")
ROOT = Path(__file__).resolve().parents[2]


def commit() -> str:
    """Short name of the commit under test, with ``+`` when the packages differ from it."""
    head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    changed = subprocess.run(
        ["git", "status", "--porcelain", "steps", "workflows", "argosy", "examples"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def kept() -> Path:
    """Where all suites keep their cases, and what they work on."""
    return Path(os.environ.get("ARGOSY_PROOFS", Path.home() / ".cache" / "argosy" / "proofs"))


@dataclass
class Record:
    """The cases of one suite with one seed, one JSON line each in ``folder``."""

    suite: str
    seed: int
    folder: Path = field(default_factory=kept)
    style: str = ""
    """The only styles of the suite that were chosen (:data:`STYLE`): cases and table are theirs alone."""

    @property
    def name(self) -> str:
        """The suite, the styles that were chosen, and what read from S3 where that was."""
        chosen = os.environ.get(S3_TRANSPORT)
        name = "-".join([self.suite, *re.findall("[a-z0-9]+", self.style.lower())])
        return f"{name}-by-{chosen}" if chosen else name

    @property
    def path(self) -> Path:
        """Where the lines lie."""
        return self.folder / f"{self.name}-{self.seed}.jsonl"

    def cases(self) -> list[dict[str, Any]]:
        """What was run so far."""
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def add(self, case: dict[str, Any]) -> None:
        """Keep a case; its commit is noted."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as target:
            target.write(json.dumps({**case, "commit": commit()}) + "\n")

    def left(self, count: int) -> range:
        """The numbers of the cases that are not run yet, of ``count``."""
        return range(len(self.cases()), count)

    def go_on(
        self, todo: Iterable[_Todo], judged: Callable[[_Todo], dict[str, Any]], minutes: float, at_once: int = 1
    ) -> None:
        """Judge ``at_once`` beside each other, keep and print each; none is begun after ``minutes``."""
        deadline, waiting = time.monotonic() + minutes * 60, iter(todo)
        with ThreadPoolExecutor(at_once) as pool:
            while batch := list(islice(waiting, at_once)):
                if time.monotonic() > deadline:
                    print("run the same command to go on", flush=True)
                    return
                for case in pool.map(judged, batch):
                    self.add(case)
                    print(json.dumps(case), flush=True)

    def told(self, title: str, columns: list[str], *, count: int | None = None, note: str = "") -> int:
        """Write the table (see :meth:`write_table`); 0 when every case held."""
        table = self.write_table(title, columns, count=count, note=note)
        print(f"written: {table.relative_to(ROOT)}")
        return 0 if all(case["held"] for case in self.cases()) else 1

    def write_table(self, title: str, columns: list[str], *, count: int | None = None, note: str = "") -> Path:
        """``docs/proof-SUITE.md`` from all cases.

        ``count``: what COUNT has to be to get them again (None: the number of lines; 0: it means nothing to the
        suite). ``note``: a paragraph on what was found.
        """
        cases = self.cases()
        held = sum(case["held"] for case in cases)
        again = len(cases) if count is None else count
        chosen = f" TRANSPORT={os.environ[S3_TRANSPORT]}" if os.environ.get(S3_TRANSPORT) else ""
        chosen += f' {STYLE}="{self.style}"' if self.style else ""
        commits = ", ".join(sorted({case["commit"] for case in cases}))
        lines = [
            f"# {title}", "",
            f"{held} of {len(cases)} held. Seed {self.seed}, commit {commits}. "
            f"Again: `make prove SUITE={self.suite}{f' COUNT={again}' if again else ''} SEED={self.seed}{chosen}`.", "",
            *([note, ""] if note else []),
            "| " + " | ".join(columns) + " |", "|" + "---|" * len(columns),
        ]  # fmt: skip
        lines += ["| " + " | ".join(str(case.get(column, "")) for column in columns) + " |" for case in cases]
        target = ROOT / "docs" / f"proof-{self.name}.md"
        target.write_text("\n".join(lines) + "\n")
        return target
