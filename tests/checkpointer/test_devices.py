"""What a save does for a GPU, as far as it shows without one; `make gpu` has the rest."""

from __future__ import annotations

import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from argosy import Checkpointer
from argosy.steps.checkpointer.arena import Arena
from argosy.steps.checkpointer.pinning import pin
from argosy.steps.checkpointer.snapshot import Snapshot

pytestmark = pytest.mark.torch


def test_every_device_is_waited_for_and_a_state_that_moved_is_planned_anew() -> None:
    with FakeTensorMode():
        first, second = torch.empty(4, 5, device="cuda:0"), torch.empty(3, device="cuda:1")
        snapshot = Snapshot({"a": first, "b": second}, 0, 1)
        assert {str(device) for device in snapshot.devices} == {"cuda:0", "cuda:1"}
        assert snapshot.fits({"a": first, "b": second})
        assert not snapshot.fits({"a": first, "b": torch.empty(3, device="cuda:0")})


class Runtime:
    """CUDA's runtime as far as pinning talks to it; ``refuses``: the code that registering answers."""

    def __init__(self, refuses: int = 0) -> None:
        self.refuses, self.current, self.asked_on = refuses, "cuda:0", [""]
        self.pinned: list[int] = []

    def cudaHostRegister(self, address: int, size: int, flags: int) -> int:
        self.asked_on.append(self.current)
        if not self.refuses:
            self.pinned.append(address)
        return self.refuses

    def cudaHostUnregister(self, address: int) -> int:
        self.pinned.remove(address)
        return 0

    @contextlib.contextmanager
    def device(self, device: str) -> Any:
        self.current, before = device, self.current
        yield
        self.current = before


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    made = Runtime()
    monkeypatch.setattr(torch.cuda, "cudart", lambda: made)
    monkeypatch.setattr(torch.cuda, "device", made.device)
    return made


def test_the_arena_is_pinned_once_per_map_on_the_scripts_device_and_never_outlives_its_map(runtime: Runtime) -> None:
    arena = Arena()
    arena.grow(1 << 20)
    assert pin(arena, "cuda:3") == pin(arena, "cuda:3") == ""
    assert runtime.pinned == [arena.address]
    assert runtime.asked_on == ["", "cuda:3"]
    arena.grow(2 << 20)
    assert runtime.pinned == []
    assert pin(arena, "cuda:3") == ""
    assert runtime.pinned == [arena.address]
    arena.close()
    assert runtime.pinned == []


def test_what_cannot_be_pinned_is_said_and_leaves_no_error_to_the_next_kernel(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime.refuses, launched = 801, SimpleNamespace(on=None)

    def launch(_size: int, device: str) -> None:
        launched.on = device
        raise RuntimeError("operation not supported")

    monkeypatch.setattr(torch, "ones", launch)
    arena = Arena()
    assert "CUDA error 801" in pin(arena, "cuda:0")
    assert launched.on == "cuda:0"
    arena.grow(1 << 20)
    arena.close()


def scattered(value: int) -> dict[str, torch.Tensor]:
    """Not contiguous: torch copies it, as it does all tensors of a GPU."""
    return {
        "whole": torch.full((30, 40), value).t(),
        "lazy": torch.full((8,), value * 1j, dtype=torch.complex64).conj(),
    }


def test_saves_within_and_outside_of_inference_mode_take_turns(tmp_path: Path) -> None:
    with contextlib.closing(Checkpointer(tmp_path)) as checkpointer:
        with torch.inference_mode():
            checkpointer.save(1, scattered(1)).wait()
        for step in (2, 3):
            checkpointer.save(step, scattered(step)).wait()
            restored = checkpointer.restore()
            assert restored is not None
            for name, tensor in scattered(step).items():
                assert torch.equal(restored.state[name], tensor)


def test_a_closed_checkpointer_gives_the_memory_of_its_snapshot_back(tmp_path: Path) -> None:
    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("memfd:argosy-arena")

    before = mapped()
    checkpointer = Checkpointer(tmp_path)
    checkpointer.save(1, scattered(1)).wait()
    assert mapped() > before
    checkpointer.close()
    assert mapped() == before
