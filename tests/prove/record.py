"""Cases that were run, kept so that a suite can go on where it stopped, and shown as a table in docs/."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

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
        deadline, waiting, lock = time.monotonic() + minutes * 60, iter(todo), threading.Lock()
        late: list[object] = []

        def work(_: int) -> None:
            while True:
                with lock:  # what is next may depend on what is kept
                    each = next(waiting, self)
                if each is self:
                    return
                if time.monotonic() > deadline:
                    late.append(each)
                    return
                case = judged(cast(_Todo, each))
                with lock:
                    self.add(case)
                print(json.dumps(case), flush=True)

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(work, range(at_once)))
        if late:
            print("run the same command to go on", flush=True)

    def told(
        self,
        title: str,
        columns: list[str],
        *,
        count: int | None = None,
        note: str = "",
        by: Sequence[str] | None = None,
    ) -> int:
        """Write ``docs/proof-SUITE.md`` from all cases; 0 when every one held.

        ``count``: what COUNT has to be to get them again (None: the number of lines; 0: it means nothing to the
        suite). ``note``: a paragraph on what was found. ``by``: one row for all cases that are alike in these columns.
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
        rows = cases if by is None else grouped(cases, by, columns)
        lines += ["| " + " | ".join(str(row.get(column, "")) for column in columns) + " |" for row in rows]
        target = ROOT / "docs" / f"proof-{self.name}.md"
        target.write_text("\n".join(lines) + "\n")
        print(f"written: {target.relative_to(ROOT)}")
        return 0 if held == len(cases) else 1


def grouped(cases: list[dict[str, Any]], by: Sequence[str], columns: list[str]) -> list[dict[str, Any]]:
    """One row for the cases that are alike in ``by``: figures added up, what held counted, other words once each."""
    alike: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for case in cases:
        alike.setdefault(tuple(case.get(name, "") for name in by), []).append(case)
    return [
        dict(zip(by, key, strict=True))
        | {name: _together(name, [case.get(name, "") for case in held]) for name in columns if name not in by}
        for key, held in alike.items()
    ]


def _together(column: str, values: list[Any]) -> Any:
    if column == "held":
        return f"{sum(values)} of {len(values)}"
    if all(isinstance(value, int | float) for value in values):
        return max(values) if "at most" in column else round(sum(values), 2)
    return "; ".join(dict.fromkeys(str(value) for value in values if value != ""))
