"""A replicated state as the files of a checkpoint, and back.

``state.json`` holds the tree and, for each tensor, its type, shape and the pieces it was cut into; the pieces lie in
safetensors files, one or more per rank.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from argosy.steps.state.plan import Piece, piece_of
from argosy.steps.state.share import FileLayout, source_of
from argosy.steps.state.tree import decode

FORMAT = "argosy.state/1"
STATE_PATH = "state.json"


def state_bytes(step: int, tree: Any, tensors: Mapping[str, Any]) -> bytes:
    """``state.json``; ``tensors`` as in :class:`argosy.steps.state.share.Layout`."""
    record: dict[str, Any] = {"format": FORMAT, "step": step, "tree": tree, "tensors": tensors}
    return json.dumps(record, separators=(",", ":"), allow_nan=False).encode()


def file_bytes(layout: FileLayout, tensors: Mapping[str, Any]) -> bytes:
    """One safetensors file. The bytes are a copy: the tensors may change as soon as this returns."""
    import torch

    buffer = bytearray(layout.size)
    buffer[: len(layout.header)] = layout.header
    for block in layout.blocks:
        source = source_of(tensors, block)
        if block.piece.size:
            into = torch.frombuffer(buffer, dtype=source.dtype, count=source.numel(), offset=block.start)
            into.view(source.shape).copy_(source)
    return bytes(buffer)


def read_state(read: Callable[[str], bytes]) -> tuple[int, Any]:
    """Step and state from the files; ``read`` gives the verified bytes of a path. Tensors are on the CPU.

    Raises:
        ValueError: not a state of a version that we know, or its pieces do not cover a tensor.
    """
    import torch
    from safetensors.torch import load

    record = json.loads(read(STATE_PATH))
    if record.get("format") != FORMAT:
        raise ValueError(f"state of format {record.get('format')!r}; this argosy reads {FORMAT}")
    by_file: dict[str, list[tuple[str, Any]]] = {}
    tensors, missing = {}, {}
    for name, facts in record["tensors"].items():
        tensors[name] = torch.empty(facts["shape"], dtype=getattr(torch, facts["dtype"]))
        missing[name] = tensors[name].numel()
        for piece in facts["pieces"]:
            by_file.setdefault(piece["file"], []).append((name, piece))
    for path, pieces in sorted(by_file.items()):
        loaded = load(read(path))
        for name, piece in pieces:
            block = Piece(name, tuple(piece["offset"]), tuple(piece["shape"]), 0)
            piece_of(tensors[name], block).copy_(loaded[piece["name"]])
            missing[name] -= loaded[piece["name"]].numel()
    holes = [name for name, count in missing.items() if count]
    if holes:
        raise ValueError(f"tensor {holes[0]!r} is not covered by its pieces")
    return int(record["step"]), decode(record["tree"], tensors)
