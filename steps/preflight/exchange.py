"""Data between the ranks of a gang, timed: in pairs, and all together."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import Store

FIRST_BYTES = 1 << 20
MOST_BYTES = {"cpu": 1 << 26, "cuda": 1 << 30}
AIM_SECONDS = 0.25
"""For one all_reduce: long enough to be measured, and a slow network still ends soon."""
TIMES = 3
_MATRIX = 8192
_MULTIPLICATIONS = 20


class Exchange:
    """The process group of this rank: NCCL on a GPU, else gloo."""

    def __init__(self, rank: int, world: int, local: int, store: Store, limit: datetime.timedelta) -> None:
        """Join; collective.

        Raises:
            RuntimeError: the others cannot be reached (:class:`torch.distributed.DistBackendError` and its like).
        """
        self.kind = "cuda" if torch.cuda.is_available() else "cpu"
        self._device = torch.device(self.kind, local) if self.kind == "cuda" else torch.device("cpu")
        if self.kind == "cuda":
            torch.cuda.set_device(self._device)
        dist.init_process_group(
            "nccl" if self.kind == "cuda" else "gloo", store=store, rank=rank, world_size=world, timeout=limit
        )

    def close(self) -> None:
        """Leave the group."""
        dist.destroy_process_group()

    def next_size(self, size: int, seconds: float) -> int:
        """Bytes to try after an all_reduce of ``size`` that took ``seconds``: the same when it was long enough.

        Small messages are all latency, so it grows by sixteen at most before it is measured again.
        """
        while_short = (factor for factor in (16, 8, 4, 2) if seconds * factor <= AIM_SECONDS)
        return min(size * next(while_short, 1), MOST_BYTES[self.kind])

    def all_reduce(self, size: int) -> float:
        """Seconds of the fastest of some all_reduces of ``size`` bytes; collective."""
        data = torch.ones(size // 4, dtype=torch.float32, device=self._device)
        return self._fastest(lambda: dist.all_reduce(data, op=dist.ReduceOp.MAX))

    def pair(self, peer: int | None, size: int) -> float:
        """Seconds of the fastest of some exchanges of ``size`` bytes each way with ``peer``; collective.

        None: this rank sits the round out, and gets 0.
        """
        dist.barrier()
        if peer is None:
            return 0.0
        out = torch.ones(size // 4, dtype=torch.float32, device=self._device)
        into = torch.empty_like(out)

        def exchange() -> None:
            both = [dist.P2POp(dist.isend, out, peer), dist.P2POp(dist.irecv, into, peer)]
            for work in dist.batch_isend_irecv(both):
                work.wait()

        return self._fastest(exchange)

    def compute(self) -> float:
        """Seconds of some multiplications of matrices on this rank's GPU; 0 on a CPU, which ranks may share."""
        if self.kind != "cuda":
            return 0.0
        left = torch.randn(_MATRIX, _MATRIX, dtype=torch.bfloat16, device=self._device)

        def multiply() -> None:
            for _ in range(_MULTIPLICATIONS):
                left @ left

        return self._fastest(multiply)

    def _fastest(self, work: Callable[[], object]) -> float:
        times = []
        for _ in range(TIMES + 1):  # the first opens connections and chooses kernels
            self._finish()
            began = time.monotonic()
            work()
            self._finish()
            times.append(time.monotonic() - began)
        return max(min(times[1:]), 1e-9)

    def _finish(self) -> None:
        if self.kind == "cuda":
            torch.cuda.synchronize(self._device)
