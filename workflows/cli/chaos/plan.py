"""Which faults happen in which run, at which step of which rank: drawn from a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from argosy.steps.contract.injection import CORRUPT, NODE_FAULTS, RANK_FAULTS, SUPERVISOR_KILL, Injection

KINDS = ("kill", "segv", "preempt", "node-loss", CORRUPT, SUPERVISOR_KILL)
"""What is drawn unless said. Not ``hang``, which takes ``deadlines.hang_seconds``, nor ``exit``, which not every script
can do."""
MOST_OF_A_RUN = 10
SEEN_SECONDS = 3.0
"""So long it may take until a fault is seen and the ranks are stopped; they train on meanwhile."""
_SUPERVISORS = 3
"""Of one run: Argo starts the step of a supervisor that was lost only a few times again."""


@dataclass(frozen=True)
class Calm:
    """What a run without faults did: the step it ended at, those of its checkpoints, and seconds from first to last."""

    steps: int
    commits: tuple[int, ...]
    seconds: float = 0.0

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """(after step, up to step) of each stretch between two checkpoints that the training does not end in."""
        last = self.steps - self._unseen
        last = last if last > 0 else self.steps
        return list(pairwise(sorted({0, *(step for step in self.commits if step < last), last})))

    @property
    def stride(self) -> int:
        """How many stretches on the next fault may lie: a checkpoint, and the time to see the first, are between."""
        return 2 + math.ceil(self._unseen * len(self.stretches) / self.steps)

    @property
    def _unseen(self) -> int:
        """Steps that are made until a fault is seen."""
        return math.ceil(SEEN_SECONDS * self.steps / max(self.seconds, 1.0))


def draw(
    kinds: Sequence[str], count: int, calm: Calm, nnodes: int, nproc_per_node: int, seed: int
) -> list[list[Injection]]:
    """``count`` faults, each kind as often as the others, in as few runs as can be blamed on nobody else.

    Between two faults of a run lies a stretch in which a checkpoint is committed: what fails again and again without
    one is given up, rightly. The first run's come after the first checkpoint, if there are others: whether a script
    resumes shows only there. A node is taken away once in a run, and before other faults had it excluded.
    """
    dice = random.Random(seed)
    bag = [kinds[number % len(kinds)] for number in range(count)]
    dice.shuffle(bag)
    runs: list[list[Injection]] = []
    while bag:
        begin = dice.randrange(0 if runs else min(1, len(calm.stretches) - 1), min(calm.stride, len(calm.stretches)))
        stretches = calm.stretches[begin :: calm.stride]
        most = min(len(stretches), MOST_OF_A_RUN)
        taken = _take(bag, most, nnodes)
        chosen = sorted(dice.sample(stretches, len(taken)))
        nodes = dice.sample(range(nnodes), nnodes)
        runs.append(
            [
                _one(kind, dice.randint(begin + 1, end), nodes, nnodes * nproc_per_node, dice)
                for kind, (begin, end) in zip(taken, chosen, strict=True)
            ]
        )
    return runs


def _take(bag: list[str], most: int, nnodes: int) -> list[str]:
    limits = {SUPERVISOR_KILL: _SUPERVISORS}
    taken: list[str] = []
    for kind in list(bag):
        alike = [each for each in taken if each == kind or (each in NODE_FAULTS and kind in NODE_FAULTS)]
        limit = nnodes if kind in NODE_FAULTS else limits.get(kind, most)
        if len(taken) < most and len(alike) < limit:
            bag.remove(kind)
            taken.append(kind)
    # What damages a checkpoint comes last, when there are some.
    return sorted(taken, key=lambda kind: (kind == CORRUPT, kind not in NODE_FAULTS))


def _one(kind: str, step: int, nodes: list[int], world: int, dice: random.Random) -> Injection:
    rank = dice.choice((0, world // 2, world - 1)) if kind in RANK_FAULTS else None
    return Injection(kind, rank, nodes.pop() if kind in NODE_FAULTS else None, step, 1 if kind == "exit" else None)
