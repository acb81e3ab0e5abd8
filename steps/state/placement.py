"""How tensors lie on the ranks: plain ones whole on each, DTensors in blocks that mesh and placements tell.

Nothing is asked of other ranks. A mesh that is a slice of a larger one (FSDP over ``mesh["dp"]``) is the same slice
elsewhere on other ranks; the tensor is taken as replicated over them, as torch does.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.steps.state.plan import Held, TensorFacts
from argosy.steps.state.runs import Runs, Sharding, blocks_of, local_shape, runs_at, runs_of

_Blocks = tuple[tuple[Held, ...], str]


def facts_of(tensors: Mapping[str, Any]) -> list[TensorFacts]:
    """What the plan needs of each tensor.

    Raises:
        InputError: a DTensor whose placement has no blocks (Partial), or whose memory is not what its placement says.
    """
    known: dict[Any, _Blocks] = {}
    facts = []
    for name, tensor in tensors.items():
        held, placement = None, ""
        if is_dtensor(tensor):
            key = (tuple(tensor.shape), tuple(tensor.placements), id(tensor.device_mesh))
            if key not in known:
                known[key] = _held(name, tensor)
            held, placement = known[key]
            _my_runs(name, tensor)
        dtype = str(tensor.dtype).removeprefix("torch.")
        facts.append(TensorFacts(name, dtype, tuple(tensor.shape), tensor.element_size(), held, placement))
    return facts


def is_dtensor(tensor: Any) -> bool:
    """Whether it is a torch.distributed.tensor.DTensor; imports nothing for those that are not."""
    kind: Any = type(tensor)
    return _is_dtensor(kind)


@functools.cache
def _is_dtensor(kind: type) -> bool:
    return any(base.__name__ == "DTensor" for base in kind.__mro__)


def local_of(tensor: Any) -> Any:
    """What this rank holds of it, without a copy."""
    return tensor.to_local().detach() if is_dtensor(tensor) else tensor


def narrowed(tensor: Any, start: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """The view ``tensor[start : start + shape]``."""
    for dimension, (first, length) in enumerate(zip(start, shape, strict=True)):
        tensor = tensor.narrow(dimension, first, length)
    return tensor


def my_blocks(name: str, tensor: Any, memory: Any = None) -> list[tuple[tuple[int, ...], Any]]:
    """(Offset in the whole tensor, view of this rank's memory) of everything that this rank holds.

    ``memory``: views of this instead, which has the shape of what the rank holds.
    """
    local = local_of(tensor) if memory is None else memory
    if not is_dtensor(tensor):
        return [((0,) * tensor.dim(), local)]
    runs = _my_runs(name, tensor)
    return [] if runs is None else [(offset, narrowed(local, at, shape)) for offset, shape, at in blocks_of(runs)]


def _shardings(name: str, tensor: Any) -> list[Sharding]:
    shardings = []
    for size, placement in zip(tensor.device_mesh.shape, tensor.placements, strict=True):
        kind = type(placement).__name__
        if placement.is_partial():
            raise InputError(
                f"state tensor {name!r} is Partial ({placement}): every rank holds a summand and nobody the value; "
                "reduce it first: tensor.redistribute(placements=[Replicate()])"
            )
        if kind not in ("Shard", "_StridedShard", "Replicate"):
            raise InputError(f"state tensor {name!r} has a placement that argosy does not know: {placement}")
        axis = None if kind == "Replicate" else placement.dim
        shardings.append(Sharding(int(size), axis, int(getattr(placement, "split_factor", 1))))
    order = getattr(tensor._spec, "shard_order", None) or ()
    if any(tuple(entry[1]) != tuple(sorted(entry[1])) for entry in order):
        raise InputError(f"state tensor {name!r} is sharded in the order {order}: only left to right can be saved")
    return shardings


def _held(name: str, tensor: Any) -> _Blocks:
    every = runs_of(tuple(tensor.shape), _shardings(name, tensor))
    families = _families(tensor.device_mesh)
    holders: dict[tuple[Runs, ...], list[int]] = {}
    for coordinate, runs in enumerate(every):
        holders.setdefault(runs, []).extend(ranks[coordinate] for ranks in families)
    held = tuple(
        Held(offset, shape, source, tuple(sorted(ranks)))
        for runs, ranks in holders.items()
        for offset, shape, source in blocks_of(runs)
    )
    mesh = hashlib.sha256(repr((families, tuple(tensor.device_mesh.shape))).encode()).hexdigest()
    return held, f"{tuple(tensor.placements)} on {mesh}"


def _my_runs(name: str, tensor: Any) -> tuple[Runs, ...] | None:
    coordinate = tensor.device_mesh.get_coordinate()
    if coordinate is None:
        return None
    runs = runs_at(tuple(tensor.shape), _shardings(name, tensor), [int(at) for at in coordinate])
    if local_shape(runs) != tuple(tensor.to_local().shape):
        raise InputError(
            f"state tensor {name!r}: this rank holds {tuple(tensor.to_local().shape)} of {tuple(tensor.shape)}, its "
            f"placement {tuple(tensor.placements)} means {local_shape(runs)}; uneven shards must be those of "
            "torch.chunk (distribute_tensor, fully_shard)"
        )
    return runs


def _families(mesh: Any) -> list[tuple[int, ...]]:
    """The ranks of this mesh and of its siblings in the mesh it was sliced from, in order of coordinate."""
    mine = tuple(int(rank) for rank in mesh.mesh.flatten().tolist())
    root = mesh._get_root_mesh() if hasattr(mesh, "_get_root_mesh") else _old_root(mesh)
    domain = [int(rank) for rank in root.mesh.flatten().tolist()]
    place = {rank: index for index, rank in enumerate(domain)}
    if len(mine) == len(domain) or not set(mine) <= place.keys():
        return [mine]
    steps = [place[rank] - place[mine[0]] for rank in mine]
    families: list[tuple[int, ...]] = []
    taken: set[int] = set()
    for base in range(len(domain)):
        if base in taken:
            continue
        sibling = [base + step for step in steps]
        if sibling[-1] >= len(domain) or max(sibling) >= len(domain) or taken & set(sibling):
            return [mine]
        taken.update(sibling)
        families.append(tuple(domain[index] for index in sibling))
    return families if mine in families else [mine]


def _old_root(mesh: Any) -> Any:
    from torch.distributed.device_mesh import _mesh_resources

    return _mesh_resources.get_root_mesh(mesh)
