"""The ranks of tests/state/test_ranks.py: ``ranks.py FOLDER``, which forks them; each writes to ``rank-N.log``.

Four processes, forked when torch has been imported once, live through all phases; a phase takes as many of them as it
wants and makes its own process group. The first failed assertion ends the process with a traceback, and the group's
others by its closed sockets.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # DTensor wants it: once here, or a second in each rank
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer import Checkpointer, Stopped
from argosy.steps.checkpointer.dcp import ArgosyReader, ArgosyWriter
from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError
from argosy.steps.state import plan
from argosy.steps.state.share import Layout, layout_of
from argosy.steps.state.tree import encode
from argosy.steps.store import open_store

FOLDER = Path(sys.argv[1])


def forked(ranks: int) -> int:
    """Returns in each of the ranks; the process itself ends when they have, with 1 when one of them failed."""
    pids = []
    for rank in range(ranks):
        if (pid := os.fork()) == 0:
            log = os.open(FOLDER / f"rank-{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            return rank
        pids.append(pid)
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    os._exit(int(any(statuses)))


RANK = forked(4)


class Model(torch.nn.Module):
    """Uneven over 2 and 4 ranks, tied weights, a buffer, a parameter smaller than the world."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 6)
        self.up = torch.nn.Linear(6, 8)
        self.down = torch.nn.Linear(8, 6)
        self.head = torch.nn.Linear(6, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.scale = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, tokens: torch.Tensor) -> Any:
        self.seen += 1
        hidden = self.embedding(tokens)
        return self.head(hidden + self.down(self.up(hidden).relu())) * self.scale.sum()


def whole(value: Any) -> Any:
    """The same tree with whole plain tensors; collective."""
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(whole(item) for item in value)
    return value.full_tensor() if isinstance(value, DTensor) else value


def same(a: Any, b: Any, path: str = "state") -> None:
    if isinstance(a, dict):
        other = {str(key): value for key, value in b.items()}
        assert {str(key) for key in a} == other.keys(), (path, list(a), list(b))
        for key, value in a.items():
            same(value, other[str(key)], f"{path}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), path
        for n, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{path}[{n}]")
    elif isinstance(a, torch.Tensor):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), path
        assert raw(a) == raw(b), (path, a, b)
    else:
        assert a == b, (path, a, b)


def raw(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def zeroed(value: Any) -> Any:
    """The same tree with its own zeroed memory for tensors, other numbers."""
    if isinstance(value, dict):
        return {key: zeroed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(zeroed(item) for item in value)
    return torch.zeros_like(value) if isinstance(value, torch.Tensor) else 0


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(1, torch.Size(shape).numel() + 1).reshape(shape).to(dtype)


NOT_GATHERED = {
    "few_ranks": numbers(5, 2),
    **{str(dtype): numbers(7, dtype=dtype) for dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.complex64)},
}
"""DTensors that gloo cannot gather (a rank outside of the mesh, types that it does not know) and their whole."""


def placed() -> dict[str, Any]:
    """Every way of placing that four ranks can show."""
    line, grid = init_device_mesh("cpu", (4,)), init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    few = DeviceMesh("cpu", [1, 3])
    made = {
        "even": distribute_tensor(numbers(8, 3), line, [Shard(0)]),
        "uneven": distribute_tensor(numbers(7, 3), line, [Shard(0)]),
        "few_rows": distribute_tensor(numbers(2, 5), line, [Shard(0)]),
        "columns": distribute_tensor(numbers(3, 10), line, [Shard(1)]),
        "third": distribute_tensor(numbers(2, 3, 6), line, [Shard(2)]),
        "nothing": distribute_tensor(numbers(0, 3), line, [Shard(0)]),
        "replicated": distribute_tensor(numbers(40, 3), line, [Replicate()]),
        "both": distribute_tensor(numbers(5, 7), grid, [Shard(0), Shard(1)]),
        "twice": distribute_tensor(numbers(9, 2), grid, [Shard(0), Shard(0)]),
        "hybrid": distribute_tensor(numbers(12, 4), grid, [Replicate(), Shard(0)]),
        "slice": distribute_tensor(numbers(6, 2), grid["dp"], [Shard(0)]),
        "columns_of_slice": distribute_tensor(numbers(4, 6), grid["tp"], [Shard(1)]),
        "plain": numbers(33, 4),
        "scalar": torch.tensor(7.5),
        "empty": torch.empty(0, 4),
        "transposed": numbers(6, 4).t(),
        "strided": numbers(6, 8)[::2, 1:5],
        "parameter": torch.nn.Parameter(numbers(3)),
        "bool": torch.tensor([True, False]),
    }
    for name, tensor in NOT_GATHERED.items():
        mesh = few if name == "few_ranks" else line
        made[name] = distribute_tensor(tensor, mesh, [Shard(0)], src_data_rank=None)
    return made


def trained(mesh: Any, *, tensor_parallel: bool = False) -> tuple[Any, Any, Any]:
    torch.manual_seed(5)
    model = Model()
    if tensor_parallel:
        parallelize_module(model, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(model, mesh=mesh["dp"])
    elif mesh is not None:
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step))


def stepped(model: Any, optimizer: Any, schedule: Any, steps: int) -> None:
    for step in range(steps):
        model(torch.arange(8).roll(step).view(2, 4)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()


def state_of(model: Any, optimizer: Any, schedule: Any) -> dict[str, Any]:
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "schedule": schedule.state_dict()}


def keep(name: str, state: Any) -> None:
    """What other phases compare with; every rank has the whole of it."""
    full = whole(state)
    if RANK == 0:
        torch.save(full, FOLDER / f"{name}.pt")


def kept(name: str) -> Any:
    return torch.load(FOLDER / f"{name}.pt", weights_only=True)


@contextlib.contextmanager
def refused(kind: type[BaseException], *words: str) -> Iterator[None]:
    try:
        yield
    except kind as error:
        text = str(getattr(error, "message", error))
        assert all(word in text for word in words), text
    else:
        raise AssertionError(f"not refused: {words}")


# ---- phases


def each_once(state: Any) -> tuple[Any, Layout]:
    """The ranks describe the state alike, and write every byte of it once."""
    _, tensors = encode(state)
    layout = layout_of(tensors, RANK, dist.get_world_size())
    digest = hashlib.sha256(json.dumps([layout.fingerprint, layout.tensors]).encode()).digest()
    gathered: list[Any] = [torch.empty(32, dtype=torch.uint8) for _ in range(4)]
    dist.all_gather(gathered, torch.frombuffer(bytearray(digest), dtype=torch.uint8))
    assert len({bytes(each.tolist()) for each in gathered}) == 1, "the ranks describe the same state differently"
    load = torch.tensor([sum(block.piece.size for file in layout.files for block in file.blocks)])
    dist.all_reduce(load)
    assert load.item() == sum(t.numel() * t.element_size() for t in tensors.values()), "not once each"
    return tensors, layout


def every_placement_saved() -> None:
    state = placed()
    plan.PIECE_BYTES, plan.FILE_BYTES = 64, 256
    tensors, layout = each_once(state)
    moved = {**tensors, "even": tensors["even"].redistribute(placements=[Replicate()])}
    assert layout_of(moved, RANK, 4).fingerprint != layout.fingerprint

    Checkpointer(FOLDER / "placed", save_rng=True).save(3, state)
    plan.PIECE_BYTES, plan.FILE_BYTES = 64 << 20, 256 << 20
    full = whole({name: t for name, t in state.items() if name not in NOT_GATHERED}) | NOT_GATHERED
    restored = Checkpointer(FOLDER / "placed", save_rng=True).restore()
    assert restored is not None
    assert restored.rng
    same(dict(sorted(full.items())), dict(sorted(restored.state.items())))
    into = zeroed(state)
    assert Checkpointer(FOLDER / "placed").restore(into) is not None
    for name, tensor in into.items():
        here, there = (t.to_local() if isinstance(t, DTensor) else t for t in (tensor, state[name]))
        assert raw(here) == raw(there), name
    if RANK == 0:
        torch.save(full, FOLDER / "placed.pt")


def refusals() -> None:
    line = init_device_mesh("cpu", (4,))
    checkpointer = Checkpointer(FOLDER / "refused")
    partial = DTensor.from_local(torch.ones(3), line, [Partial()])
    with refused(InputError, "Partial", "redistribute"):
        checkpointer.save(1, {"w": partial})
    odd = DTensor.from_local(torch.ones(1 + 2 * (RANK % 2)), line, [Shard(0)], shape=(8,), stride=(1,), run_check=False)
    with refused(InputError, "'w'", "torch.chunk"):
        checkpointer.save(1, {"w": odd})
    assert checkpointer.restore() is None


def hybrid_and_two_dimensional() -> None:
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    for name, options in (("hybrid", {}), ("tensor-parallel", {"tensor_parallel": True})):
        parts = trained(grid, **options)
        stepped(*parts, 2)
        state = state_of(*parts)
        if options:
            assert "_StridedShard" in {type(p).__name__ for t in state["model"].values() if isinstance(t, DTensor)
                                       for p in t.placements}  # fmt: skip
        checkpointer = Checkpointer(FOLDER / name)
        each_once(state)
        checkpointer.save(2, state).wait()
        keep(name, state)
        restored = checkpointer.restore()
        assert restored is not None
        same(whole(state), restored.state)


def fsdp_saved_on_four() -> None:
    parts = trained(init_device_mesh("cpu", (4,)))
    stepped(*parts, 3)
    state = state_of(*parts)
    Checkpointer(FOLDER / "fsdp", save_rng=True).save(3, state)
    keep("fsdp", state)
    dcp.save(state, storage_writer=ArgosyWriter(Checkpointer(FOLDER / "dcp"), 3))
    staged = dcp.async_save(state, storage_writer=ArgosyWriter(Checkpointer(FOLDER / "dcp-async"), 3))
    getattr(staged, "upload_completion", staged).result()
    for folder in ("fsdp", "dcp"):
        steps_apart(FOLDER / folder)


def steps_apart(folder: Path) -> None:
    """What every rank loads lies in no file with shards: one would be read by all for the sake of four bytes."""
    found = json.loads(next(folder.glob("data/*/files/state.json")).read_text())["tensors"]
    steps = {piece["file"] for name, t in found.items() if name.endswith("step") for piece in t["pieces"]}
    cut = {piece["file"] for t in found.values() for piece in t["pieces"] if piece["shape"] != t["shape"]}
    assert steps, list(found)
    assert cut
    assert not steps & cut


def resharded(checkpoint: str, mesh_shape: tuple[int, ...] | None) -> Callable[[], None]:
    """Into a fresh model and optimizer; then both train on as one."""

    def phase() -> None:
        names = ("dp", "tp")[: len(mesh_shape)] if mesh_shape else None
        mesh = init_device_mesh("cpu", mesh_shape, mesh_dim_names=names) if mesh_shape else None
        model, optimizer, schedule = trained(mesh, tensor_parallel=mesh_shape is not None and len(mesh_shape) == 2)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
        into = state_of(model, optimizer, schedule)
        restored = Checkpointer(FOLDER / checkpoint, save_rng=True).restore(into)
        assert restored is not None
        assert restored.step == 3
        world_size = dist.get_world_size()
        assert restored.rng == (world_size == 4), "generators of four ranks are restored on four only"
        set_state_dict(
            model, optimizer, model_state_dict=restored.state["model"], optim_state_dict=restored.state["optimizer"]
        )
        schedule.load_state_dict(restored.state["schedule"])
        expected = kept("fsdp")
        same(expected, whole(state_of(model, optimizer, schedule)))
        assert schedule.get_last_lr() == [1e-2 / 4]
        assert optimizer.param_groups[0]["lr"] == 1e-2 / 4
        assert model.seen == 3

    return phase


def resharded_by_dcp(checkpoint: str) -> Callable[[], None]:
    def phase() -> None:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        into = zeroed(state_of(*trained(mesh)))
        reader = ArgosyReader(Checkpointer(FOLDER / checkpoint))
        dcp.load(into, storage_reader=reader)
        assert reader.step == 3
        expected, found = kept("fsdp"), whole(into)
        for part in ("model", "optimizer"):
            same(expected[part], found[part])
        assert found["schedule"]["last_epoch"] == 3

    return phase


def plain_on_one() -> None:
    """What FSDP2 saved goes into a plain model, and what a plain model saved goes into FSDP2 (next phase)."""
    resharded("fsdp", None)()
    parts = trained(None)
    stepped(*parts, 3)
    state = state_of(*parts)
    Checkpointer(FOLDER / "plain").save(3, state)
    torch.save(whole(state), FOLDER / "plain.pt")


def plain_into_fsdp() -> None:
    into = zeroed(state_of(*trained(init_device_mesh("cpu", (4,)))))
    assert Checkpointer(FOLDER / "plain").restore(into) is not None
    same(kept("plain")["model"], whole(into)["model"])
    same(kept("plain")["optimizer"]["state"], whole(into)["optimizer"]["state"])


def other_placement() -> None:
    pair = init_device_mesh("cpu", (2,))
    full = kept("placed")
    into: dict[str, Any] = zeroed(full)
    for n, name in enumerate(sorted(into.keys() - NOT_GATHERED.keys() - {"scalar"})):
        into[name] = distribute_tensor(into[name], pair, [Shard(n % into[name].dim())])
    restored = Checkpointer(FOLDER / "placed", save_rng=True).restore(into)
    assert restored is not None
    assert not restored.rng, "generators of four ranks are nobody's among two"
    same(full, whole(into))


def nothing_is_loaded_in_part() -> None:
    pair = init_device_mesh("cpu", (2,))
    model = kept("fsdp")["model"]
    into = {"model": {name: distribute_tensor(torch.full_like(t, 0), pair, [Replicate()]) for name, t in model.items()}}
    checkpointer = Checkpointer(FOLDER / "fsdp")
    with refused(InputError, "not in the given state", "state['optimizer']", "strict=False", "get_state_dict"):
        checkpointer.restore(into)
    into["model"]["added"] = torch.ones(2)
    with refused(InputError, "missing in the checkpoint", "state['model']['added']"):
        checkpointer.restore(into)
    assert not any(t.to_local().any() for name, t in into["model"].items() if name != "added"), "filled in part"
    restored = checkpointer.restore(into, strict=False)
    assert restored is not None
    assert into["model"].pop("added").tolist() == [1, 1]
    same(model, whole(into["model"]))
    wrong = {**into["model"], "up.bias": torch.zeros(9), "down.bias": torch.zeros(6, dtype=torch.bfloat16)}
    with refused(InputError, "'model/up.bias'", "[8]", "[9]", "float32", "bfloat16", "'model/down.bias'"):
        checkpointer.restore({"model": wrong}, strict=False)
    if RANK == 1:
        wrong = into["model"]
    # One rank's mistake ends both, and neither waits for the other.
    with refused(InputError if RANK == 0 else Stopped, "up.bias"):
        checkpointer.restore({"model": wrong}, strict=False)


def ranks_are_told_different_checkpoints() -> None:
    folder = FOLDER / "told"
    store = CheckpointStore(open_store(f"file://{folder}"), "")
    checkpointer = Checkpointer(folder)
    first, second = (checkpointer.save(step, {"w": torch.ones(2)}) for step in (1, 2))
    os.environ[env.RUN_URI] = f"file://{folder}"
    for mine in (second.digest if RANK else first.digest, second.digest if RANK else ""):
        os.environ[env.RESUME_DIGEST] = mine
        with refused(Stopped, "was told to resume from", second.digest):
            Checkpointer().restore()
    del os.environ[env.RUN_URI], os.environ[env.RESUME_DIGEST]
    mine = ArgosyReader(store, second.digest if RANK else first.digest)
    with refused(dcp.api.CheckpointException, "give all one digest"):
        dcp.load({"w": torch.zeros(2)}, storage_reader=mine)
    with refused(dcp.api.CheckpointException, "builtins.set", "state['a']"):
        dcp.save({"a": {1}}, storage_writer=ArgosyWriter(store, 9))
    with refused(InputError, "use_collectives"):
        dcp.save({"w": torch.ones(1)}, storage_writer=ArgosyWriter(store, 9), use_collectives=False)


def damage_that_one_rank_finds() -> None:
    """Outside argosy all ranks go to the checkpoint before; inside all end with 72."""
    folder = FOLDER / "damaged"
    pair = init_device_mesh("cpu", (2,))
    state = {"w": distribute_tensor(numbers(8, 64), pair, [Shard(0)])}
    first = Checkpointer(folder).save(1, state)
    second = Checkpointer(folder).save(2, {"w": state["w"] * 2})
    if RANK == 0:
        shard = next(folder.glob("data/0000000002-*/files/tensors/rank-00001-000.safetensors"))
        data = bytearray(shard.read_bytes())
        data[-5] ^= 1
        shard.write_bytes(data)
    dist.barrier()
    into = zeroed(state)
    os.environ |= {env.RUN_URI: f"file://{folder}", env.RESUME_DIGEST: second.digest}
    with refused(Stopped, f"checkpoint_corrupt digest={second.digest}", "rank-00001"):
        Checkpointer().restore(into)
    del os.environ[env.RUN_URI], os.environ[env.RESUME_DIGEST]
    restored = Checkpointer(folder).restore(into)
    assert restored is not None
    assert (restored.step, restored.digest) == (1, first.digest)
    same(whole(state), whole(into))


def damage_that_one_rank_finds_in_the_only_one() -> None:
    """The other rank's tensors are filled by then, and its generators set: both end, none starts from scratch so."""
    folder = FOLDER / "only-damaged"
    pair = init_device_mesh("cpu", (2,))
    state = {"w": distribute_tensor(numbers(8, 64), pair, [Shard(0)])}
    Checkpointer(folder, save_rng=True).save(1, state, wait=True)
    if RANK == 0:
        shard = next(folder.glob("data/*/files/tensors/rank-00001-000.safetensors"))
        shard.write_bytes(shard.read_bytes()[:-1] + b"!")
    dist.barrier()
    into = zeroed(state)
    torch.rand(5)
    before = torch.get_rng_state()
    with refused(Stopped, "checkpoint_corrupt digest=", "rank-00001", "there is none before it"):
        Checkpointer(folder, save_rng=True).restore(into)
    assert bool(into["w"].to_local().any()) == (RANK == 0)
    assert torch.equal(torch.get_rng_state(), before)


PHASES: list[tuple[int, Callable[[], None]]] = [
    (4, every_placement_saved),
    (4, refusals),
    (4, hybrid_and_two_dimensional),
    (4, fsdp_saved_on_four),
    (2, resharded("fsdp", (2,))),
    (2, resharded("dcp", (2,))),
    (2, resharded_by_dcp("fsdp")),
    (2, resharded_by_dcp("dcp-async")),
    (2, other_placement),
    (2, nothing_is_loaded_in_part),
    (2, ranks_are_told_different_checkpoints),
    (2, damage_that_one_rank_finds),
    (2, damage_that_one_rank_finds_in_the_only_one),
    (1, plain_on_one),
    (4, plain_into_fsdp),
    (4, resharded("fsdp", (2, 2))),
]


def main() -> None:
    torch.set_num_threads(1)
    only = set(map(int, sys.argv[2:]))  # to try some phases again in the folder of an earlier run
    for number, (world_size, phase) in enumerate(PHASES):
        if world_size <= RANK or (only and number not in only):
            continue
        began = time.monotonic()
        meeting = f"file://{FOLDER}/meeting-{number}"
        dist.init_process_group("gloo", init_method=meeting, rank=RANK, world_size=world_size)
        phase()
        dist.barrier()
        dist.destroy_process_group()
        print(f"rank {RANK} passed {number} {phase.__qualname__} in {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
