"""The random generators of one rank (Python, NumPy, torch CPU and the current accelerator) as JSON."""

from __future__ import annotations

import base64
import json
import random
import sys
from typing import Any

FORMAT = "argosy.random/1"


def random_path(rank: int) -> str:
    """Path in the checkpoint."""
    return f"random/rank-{rank:05d}.json"


def capture() -> bytes:
    """All generators of this process."""
    import torch

    version, words, gauss = random.getstate()
    record: dict[str, Any] = {
        "format": FORMAT,
        "python": [version, list(words), gauss],
        "torch": _packed(torch.get_rng_state()),
        "cuda": [_packed(state) for state in torch.cuda.get_rng_state_all()] if torch.cuda.is_available() else [],
    }
    if (numpy := sys.modules.get("numpy")) is not None:
        name, keys, position, has_gauss, cached = numpy.random.get_state(legacy=True)
        record["numpy"] = [name, keys.tolist(), int(position), int(has_gauss), float(cached)]
    return json.dumps(record).encode()


def restore(raw: bytes) -> None:
    """Set the generators.

    Raises:
        ValueError: not written by :func:`capture`.
    """
    import torch

    record = json.loads(raw)
    if record.get("format") != FORMAT:
        raise ValueError(f"random state of format {record.get('format')!r}; this argosy reads {FORMAT}")
    version, words, gauss = record["python"]
    random.setstate((version, tuple(words), gauss))
    torch.set_rng_state(_unpacked(record["torch"]))
    if torch.cuda.is_available() and len(record["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([_unpacked(state) for state in record["cuda"]])
    if "numpy" in record:
        import numpy

        name, keys, position, has_gauss, cached = record["numpy"]
        numpy.random.set_state((name, numpy.array(keys, dtype=numpy.uint32), position, has_gauss, cached))


def _packed(state: Any) -> str:
    return base64.b64encode(bytes(state.cpu().tolist())).decode()


def _unpacked(text: str) -> Any:
    import torch

    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
