"""Agreement among the ranks of a training, over torch.distributed where it is initialised.

Only plain uint8 tensors travel: the ``*_object`` collectives pickle.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any

from argosy.steps.checkpointer.stopping import stop
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError

_RECORD_BYTES = 2048
_MESSAGE_CHARACTERS = 700


class Ranks:
    """This rank among all; records are JSON objects of at most about 2 KB."""

    def __init__(self) -> None:
        """Looks at torch.distributed now: make one for each collective action.

        Raises:
            InputError: several ranks were started and torch.distributed is not initialised yet.
        """
        import torch.distributed as dist

        self._dist = dist if dist.is_available() and dist.is_initialized() else None
        if self._dist is None and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise InputError(
                "Checkpointer was used before torch.distributed was initialised while WORLD_SIZE = "
                f"{os.environ['WORLD_SIZE']}: call torch.distributed.init_process_group() first"
            )
        self.rank: int = self._dist.get_rank() if self._dist else 0
        self.world_size: int = self._dist.get_world_size() if self._dist else 1

    def broadcast(self, record: dict[str, Any] | None) -> dict[str, Any]:
        """Rank 0's record, on every rank. Raises Stopped when another rank is gone; so does :meth:`gather`."""
        if self._dist is None:
            return record or {}
        data = self._packed(record or {})
        with self._together():
            self._dist.broadcast(data, src=0)
        return _unpacked(data)

    def gather(self, record: dict[str, Any]) -> list[dict[str, Any]]:
        """Every rank's record, on every rank, in order of rank."""
        if self._dist is None:
            return [record]
        mine = self._packed(record)
        everyone = [mine.new_empty(mine.shape) for _ in range(self.world_size)]
        with self._together():
            self._dist.all_gather(everyone, mine)
        return [_unpacked(data) for data in everyone]

    @contextlib.contextmanager
    def _together(self) -> Iterator[None]:
        """Around a collective: one that fails because another rank is gone ends this rank by that name."""
        try:
            yield
        except RuntimeError as error:
            # All rules of the verdicts: every rank would wait for them as it starts.
            from argosy.steps.verdict.match import match_line

            said = str(error).strip().split("\n", 1)[0]
            known = match_line(f"{type(error).__name__}: {said}")
            if known is None or known.cause not in (Cause.PEER_LOST, Cause.NCCL_TIMEOUT):
                raise
            stop(known.cause, f"rank {self.rank} lost the others while checkpoints were agreed on: {said}", known.code)

    def _packed(self, record: dict[str, Any]) -> Any:
        import torch

        if "message" in record:
            record = {**record, "message": str(record["message"])[:_MESSAGE_CHARACTERS]}
        raw = json.dumps(record).encode()
        if len(raw) > _RECORD_BYTES:
            record = {**record, "message": str(record.get("message", ""))[:100]}
            raw = json.dumps(record).encode()
        data = torch.frombuffer(bytearray(raw.ljust(_RECORD_BYTES)), dtype=torch.uint8)
        return data.to(self._device())

    def _device(self) -> Any:
        import torch

        assert self._dist is not None
        backend = str(self._dist.get_backend_config()) if hasattr(self._dist, "get_backend_config") else ""
        backend = backend or str(self._dist.get_backend())
        if "gloo" in backend or "mpi" in backend:
            return torch.device("cpu")
        return torch.device(f"{_accelerator()}:{torch.accelerator.current_device_index()}")


def _accelerator() -> str:
    import torch

    found = torch.accelerator.current_accelerator()
    return "cpu" if found is None else str(found.type)


def _unpacked(data: Any) -> dict[str, Any]:
    loaded = json.loads(bytes(data.cpu().tolist()))
    assert isinstance(loaded, dict)
    return loaded
