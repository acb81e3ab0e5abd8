"""Learn workflows/diagnosis/learned.json from the labelled public logs of tests/verdict.

python scripts/learn_words.py [--until SET] [-o FILE]

A multinomial logistic regression on the words of each log; what counts little is left out. ``--until``: from the sets
up to that one only, to be tried on those after it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from argosy.workflows.diagnosis.learned import BIAS, shares, telling, words_in  # noqa: E402
from tests.verdict.public import LOGS, digest, half_of  # noqa: E402

_IN_LOGS = 3
"""A word that fewer logs have is a name."""
_STRENGTH = 30.0
"""Of the logs against small weights (the C of scikit-learn's LogisticRegression); from 10 to 100 it hardly matters."""
_LEAST = 0.7


def main() -> int:
    """Write the weights."""
    parser = argparse.ArgumentParser(prog="learn_words.py", description=__doc__)
    sets = list(dict.fromkeys(half_of(log) for log in LOGS))
    parser.add_argument("--until", choices=sets, default=sets[-1])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "workflows/diagnosis/learned.json")
    args = parser.parse_args()
    known = sets[: sets.index(args.until) + 1]
    logs = [log for log in LOGS if half_of(log) in known]
    learned = learn(logs)
    lines = [f'"{cause}": {json.dumps(words)}' for cause, words in learned.items()]
    head = f'"sha256": "{digest(logs)}",\n"causes": {{\n'
    args.output.write_text("{" + head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")
    print(f"{args.output}: {sum(map(len, learned.values()))} weights from {len(logs)} logs")
    return 0


def learn(logs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """By cause the weight of each word that counts, and of the BIAS."""
    counted = [Counter(word for line in telling(log["say"].split("\n")) for word in words_in(line)) for log in logs]
    spread = Counter(word for counts in counted for word in counts)
    words = sorted(word for word, number in spread.items() if number >= _IN_LOGS)
    causes = sorted({log["cause"] for log in logs})
    wanted = torch.tensor([causes.index(log["cause"]) for log in logs])
    weights, _ = _fitted(_rows(counted, words), wanted, len(causes))
    # What counts for no cause is no part of a log's length either.
    words = [word for word, most in zip(words, weights.abs().amax(dim=0).tolist(), strict=True) if most >= _LEAST]
    weights, bias = _fitted(_rows(counted, words), wanted, len(causes))
    return {
        cause: {BIAS: round(first, 1)}
        | {
            word: round(weight, 1)
            for weight, word in sorted(zip(row, words, strict=True), reverse=True)
            if abs(weight) >= _LEAST
        }
        for cause, first, row in zip(causes, bias.tolist(), weights.tolist(), strict=True)
    }


def _rows(counted: list[Counter[str]], words: list[str]) -> torch.Tensor:
    column = {word: index for index, word in enumerate(words)}
    rows = torch.zeros(len(counted), len(words), dtype=torch.float64)
    for row, counts in zip(rows, counted, strict=True):
        known = Counter({word: count for word, count in counts.items() if word in column})
        for word, share in shares(known).items():
            row[column[word]] = share
    return rows


def _fitted(rows: torch.Tensor, wanted: torch.Tensor, causes: int) -> tuple[torch.Tensor, torch.Tensor]:
    weights = torch.zeros(causes, rows.shape[1], dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(causes, dtype=torch.float64, requires_grad=True)
    descent = torch.optim.LBFGS([weights, bias], max_iter=500, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        descent.zero_grad()
        missed = torch.nn.functional.cross_entropy(rows @ weights.T + bias, wanted, reduction="sum")
        total = _STRENGTH * missed + weights.square().sum() / 2
        total.backward()  # type: ignore[no-untyped-call]
        return total

    descent.step(loss)  # type: ignore[no-untyped-call]
    return weights.detach(), bias.detach()


if __name__ == "__main__":
    raise SystemExit(main())
