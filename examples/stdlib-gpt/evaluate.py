"""Bits per byte on files the model never saw, beside what costs nothing: byte frequencies and xz.

    argosy run run.toml                                     # runs this on the checkpoint that training committed
    python evaluate.py --checkpoints checkpoints --data DIR # on what a plain train.py left

``unigram``: the entropy of the held-out bytes' own frequencies, the best that any model without context can do.
``xz``: the held-out files compressed as one stream (preset 9); it has seen no training data, but unlike the model
it may look back at everything before, not only at the last 128 bytes.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from corpus import Corpus
from model import GPT, Shape, next_byte_loss

from argosy import Checkpointer

Bytes = npt.NDArray[np.uint8]


@torch.inference_mode()
def model_bits(gpt: GPT, corpus: Corpus, rows: int = 64) -> float:
    """Bits per byte of the model over all windows, each predicted from within its window only."""
    nats, count = 0.0, 0
    for begin in range(0, corpus.windows, rows):
        inputs, targets = corpus.rows(range(begin, min(begin + rows, corpus.windows)))
        nats += next_byte_loss(gpt(inputs), targets, reduction="sum").item()
        count += targets.numel()
    return nats / count / math.log(2)


def unigram_bits(stream: Bytes) -> float:
    """Entropy of the bytes' frequencies, in bits per byte."""
    share = np.bincount(stream, minlength=256) / len(stream)
    share = share[share > 0]
    return float(-(share * np.log2(share)).sum())


def xz_bits(stream: Bytes) -> float:
    """Size after xz, in bits per byte."""
    return 8 * len(lzma.compress(stream.tobytes(), preset=9)) / len(stream)


def main() -> None:
    """Evaluate and write the metrics."""
    parser = argparse.ArgumentParser(description="Bits per byte on held-out files.")
    parser.add_argument("--checkpoints", type=Path, default=None, help="folder of train.py; default: argosy's own")
    parser.add_argument("--data", type=Path, default=os.environ.get("ARGOSY_DATA_PATH", "data"), help="held-out *.bin")
    args = parser.parse_args()
    restored = Checkpointer.load() if args.checkpoints is None else Checkpointer(args.checkpoints).restore()
    if restored is None:
        raise SystemExit(f"evaluate.py: no checkpoint in {args.checkpoints}")
    torch.set_num_threads(1)  # the order of additions, as in train.py; so small a model gains little by a second
    gpt = GPT(Shape()).eval()
    gpt.load_state_dict(restored.state["model"])
    corpus = Corpus(args.data, gpt.shape.context)
    metrics = {
        "bits_per_byte": model_bits(gpt, corpus),
        "unigram_bits_per_byte": unigram_bits(corpus.stream),
        "xz_bits_per_byte": xz_bits(corpus.stream),
        "held_out_bytes": len(corpus.stream),
        "step": restored.step,
    }
    text = json.dumps(metrics, indent=2)
    print(text)
    if path := os.environ.get("ARGOSY_METRICS_PATH"):
        Path(path).write_text(text + "\n")


if __name__ == "__main__":
    main()
