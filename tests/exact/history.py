"""What a run did, from its commit log and its ranks' lines, beside one that nobody disturbed."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer import Checkpointer
from argosy.steps.store import open_store
from tests.exact.training import digest


@dataclass
class History:
    """Of one run; made by :func:`read`."""

    losses: list[tuple[int, int, str, str]] = field(default_factory=list)
    """(generation, step, loss's bits, digest of the generators), of every rank's every line."""
    samples: dict[tuple[int, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    """(generation, step) -> samples that its ranks read."""
    chain: list[tuple[int, int]] = field(default_factory=list)
    """(generation, step) of every commit, oldest first."""
    final: dict[str, str] = field(default_factory=dict)
    """Digest of each part of the final checkpoint's state."""
    final_step: int = 0

    def committed_samples(self) -> dict[int, list[int]]:
        """What was read by the generation that trained each step of the committed history."""
        found: dict[int, list[int]] = {}
        for (_, before), (generation, step) in pairwise([(0, 0), *self.chain]):
            for number in range(before + 1, step + 1):
                found[number] = self.samples.get((generation, number), [])
        return found


def read(uri: str, folder: Path) -> History:
    """The log is read whole, its chain of parents checked; the final checkpoint is fetched and verified."""
    history = History()
    for path in sorted(folder.glob("*.lines")):
        generation = int(path.name[1:5])
        for raw in path.read_text().splitlines():
            line = json.loads(raw)
            history.losses.append((generation, line["step"], line["loss"], line["random"]))
            history.samples[generation, line["step"]] += line["samples"]
    store = CheckpointStore(open_store(uri), "")
    entries = store.log.entries()
    history.chain = [(entry.generation, entry.step) for entry in entries if entry.kind == "commit"]
    newest = store.newest()
    assert newest is not None
    with tempfile.TemporaryDirectory() as into:
        store.fetch(newest, Path(into))
        restored = Checkpointer.load(into)
    history.final = {name: digest(part) for name, part in restored.state.items()}
    history.final_step = restored.step
    return history


def differences(killed: History, truth: History, recipe: dict[str, int]) -> list[str]:
    """Everything in which the run differs from the one that nobody disturbed; empty: nothing."""
    wrong = []
    true = {step: (loss, generators) for _, step, loss, generators in truth.losses}
    for generation, step, loss, generators in killed.losses:
        if true[step] != (loss, generators):
            wrong.append(f"generation {generation} step {step}: loss {loss}, {true[step][0]} in truth")
    if (killed.final_step, killed.final) != (truth.final_step, truth.final):
        parts = [name for name in truth.final if killed.final.get(name) != truth.final[name]]
        wrong.append(f"final state differs in {parts}, steps {killed.final_step} and {truth.final_step}")
    if any(older >= newer for (_, older), (_, newer) in pairwise(killed.chain)):
        wrong.append(f"steps go back: {killed.chain}")
    if any(older > newer for (older, _), (newer, _) in pairwise(killed.chain)):
        wrong.append(f"generations go back: {killed.chain}")
    return wrong + _miscounted(killed.committed_samples(), recipe["samples"], recipe["global_batch"])


def _miscounted(read_by_step: dict[int, list[int]], samples: int, global_batch: int) -> list[str]:
    wrong = [
        f"step {step} of the committed history read {len(numbers)} samples"
        for step, numbers in read_by_step.items()
        if len(numbers) != global_batch
    ]
    counts: Counter[int] = Counter()
    for step, numbers in sorted(read_by_step.items()):
        counts.update(numbers)
        # Whole epochs so far: each sample was read so often, or once more when it is in the epoch that has begun.
        epochs = step * global_batch // samples
        strange = [n for n in range(samples) if counts[n] - epochs not in (0, 1)]
        if strange or len(counts) > samples:
            return [*wrong, f"after step {step} ({epochs} epochs) read too often or not at all: {strange[:10]}"]
    return wrong


def proven(history: History) -> dict[str, Any]:
    """Figures for a record."""
    return {
        "steps": history.final_step,
        "commits": len(history.chain),
        "losses compared": len(history.losses),
        **{f"sha256 {name}": value[:16] for name, value in history.final.items() if name in ("model", "optimizer")},
        "sha256 rng": max(history.losses, key=lambda line: line[1])[3][:16],
    }
