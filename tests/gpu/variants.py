"""Ways in which a training writes into its state: streams, graphs, compilers, layouts, types, shardings, optimizers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tests.gpu.case import Case

_CYCLES_PER_MS = 1_500_000


class Variant:
    """A small training. ``step`` queues work and does not wait; ``delay`` is in ms, on the stream before it."""

    def __init__(self, case: Case, *, side: bool = False, joined: bool = True, **adamw: Any) -> None:
        """``side``: steps run on a stream of their own; ``joined``: saves are called from there too."""
        import torch

        self.case, self.torch = case, torch
        self._stream = torch.cuda.Stream() if case.cuda and side else None
        self._joined = joined
        torch.manual_seed(1)
        if case.cuda:
            torch.cuda.set_device(0)
        with self.in_stream():
            self.model = self.made(case.pick(512, 16)).to(case.device)
            options = {"fused": case.cuda, **adamw}
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2, **options)
            self.input = torch.randn(32, case.pick(512, 16), device=case.device)

    def made(self, width: int) -> Any:
        nn = self.torch.nn
        return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def in_stream(self) -> Any:
        return self.torch.cuda.stream(self._stream) if self._stream is not None else contextlib.nullcontext()

    def saving_from(self) -> Any:
        """The context that saves are called in."""
        return self.in_stream() if self._joined else contextlib.nullcontext()

    def step(self, delay: float) -> None:
        with self.in_stream():
            if self.case.cuda:
                self.torch.cuda._sleep(int(delay * _CYCLES_PER_MS) + 1)
            self.input.normal_()
            self.trained()

    def trained(self) -> None:
        self.forward(self.input).float().square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def forward(self, given: Any) -> Any:
        return self.model(given)

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def copied(self) -> Any:
        """A copy of the state on the device, queued behind the last step."""
        with self.in_stream():
            return self._copied(self.state())

    def _copied(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._copied(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._copied(each) for each in value)
        if not isinstance(value, self.torch.Tensor):
            return value
        copy = getattr(value, "_local_tensor", value).detach().clone()
        if self._stream is not None:
            copy.record_stream(self._stream)
        return copy


class Graph(Variant):
    """One captured step, replayed: no allocation, no Python, static addresses."""

    def __init__(self, case: Case) -> None:
        super().__init__(case, **({"capturable": True} if case.cuda else {}))
        self.graph: Any = None
        if not case.cuda:
            return
        warm = self.torch.cuda.Stream()
        warm.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(warm):
            for _ in range(3):
                self.trained()
        self.torch.cuda.current_stream().wait_stream(warm)
        self.graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(self.graph):
            self.forward(self.input).square().mean().backward()
            self.optimizer.step()

    def trained(self) -> None:
        if getattr(self, "graph", None) is None:
            super().trained()
        else:
            self.graph.replay()


class Compiled(Variant):
    """Forward and backward by torch.compile (on CPUs without a compiler: its tracing alone)."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._compiled = self.torch.compile(self.model, backend=case.pick("inductor", "eager"))

    def forward(self, given: Any) -> Any:
        return self._compiled(given)


class Scattered(Variant):
    """Tensors that are not contiguous: transposed, strided, channels last, conjugate, a view into a larger one."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        torch, size = self.torch, case.pick(1024, 8)
        self._base = torch.randn(size, size, device=case.device)
        self._images = torch.randn(4, 3, size, 8, device=case.device).to(memory_format=torch.channels_last)
        self._waves = torch.randn(size, 7, dtype=torch.complex64, device=case.device)

    def trained(self) -> None:
        for tensor in (self._base, self._images, self._waves):
            tensor.add_(1.25)

    def state(self) -> dict[str, Any]:
        return {
            "transposed": self._base.t(), "strided": self._base[::2, 1::3], "images": self._images,
            "conjugate": self._waves.conj(), "part": self._base[3:7, 2:5], "one": self._base[2, 2],
            "empty": self._base[:0], "expanded": self._base[:1].expand(5, -1),
        }  # fmt: skip


class Narrow(Variant):
    """Weights and moments in bfloat16."""

    def made(self, width: int) -> Any:
        return super().made(width).bfloat16()

    def forward(self, given: Any) -> Any:
        return self.model(given.bfloat16())


class Float8(Variant):
    """Both kinds of fp8, whole and transposed, beside scales."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        torch, size = self.torch, case.pick(1024, 16)
        self._wide = torch.randn(size, size, device=case.device)
        self._held = {kind: self._wide.to(getattr(torch, kind)) for kind in ("float8_e4m3fn", "float8_e5m2")}

    def trained(self) -> None:
        self._wide.normal_()
        for held in self._held.values():
            held.copy_(self._wide)

    def state(self) -> dict[str, Any]:
        turned = {f"{kind} transposed": held.t() for kind, held in self._held.items()}
        return {**self._held, **turned, "scale": self._wide.abs().amax(1)} if self.case.cuda else {**self._held}


class Sharded(Variant):
    """FSDP2 on one rank: DTensors."""

    def made(self, width: int) -> Any:
        dist = self.torch.distributed
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        store = dist.FileStore(str(self.case.folder / "rendezvous"), 1)
        dist.init_process_group(self.case.pick("nccl", "gloo"), store=store, rank=0, world_size=1)
        model = super().made(width).to(self.case.device)
        return fully_shard(model, mesh=init_device_mesh(self.case.device, (1,)))


VARIANTS: dict[str, Callable[[Case], Variant]] = {
    "default stream, fused AdamW": Variant,
    "side stream, saved from it": lambda case: Variant(case, side=True),
    "side stream, saved from the default one": lambda case: Variant(case, side=True, joined=False),
    "AdamW for each, amsgrad": lambda case: Variant(case, fused=False, foreach=True, amsgrad=True),
    "CUDA graph": Graph,
    "torch.compile": Compiled,
    "not contiguous": Scattered,
    "bfloat16": Narrow,
    "fp8": Float8,
    "DTensor (FSDP2, one rank)": Sharded,
}
