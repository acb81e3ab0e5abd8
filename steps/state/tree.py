"""A state (nested dicts, lists, tensors, numbers, strings) as JSON plus named tensors, and back. No pickle.

JSON's own values stand for themselves; what JSON lacks is an object with one key that begins with ``$``:
``$tuple``, ``$dict`` (keys that are not plain strings), ``$float`` (nan, inf), ``$bytes``, ``$dtype``, ``$device``,
``$tensor`` and ``$ndarray`` (a name).
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.steps.state.placement import is_dtensor, local_of

_SCALARS = (bool, int, str, type(None))


def encode(state: Mapping[str, Any], found: Callable[[str, Any], object] | None = None) -> tuple[Any, dict[str, Any]]:
    """The tree, and name -> tensor (detached, on its device). The same tensor at two places is stored once.

    ``found`` is called with each name and tensor as it is come upon, in the order of the second result.

    Raises:
        InputError: a value that has no place in a checkpoint; names the path in the state.
    """
    encoder = _Encoder(found)
    return encoder.value(state, ()), encoder.tensors


def decode(tree: Any, tensors: Mapping[str, Any]) -> Any:
    """The state; tensors that were one are one again.

    Raises:
        ValueError: not a tree of :func:`encode`. KeyError: a tensor is missing.
    """
    if isinstance(tree, list):
        return [decode(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) == 1 and next(iter(tree)).startswith("$"):
        return _decode_tagged(*next(iter(tree.items())), tensors)
    return {key: decode(item, tensors) for key, item in tree.items()}


def _decode_tagged(tag: str, body: Any, tensors: Mapping[str, Any]) -> Any:
    match tag:
        case "$tensor":
            return tensors[body]
        case "$ndarray":
            return tensors[body].numpy()
        case "$tuple":
            return tuple(decode(item, tensors) for item in body)
        case "$dict":
            return {decode(key, tensors): decode(item, tensors) for key, item in body}
        case "$float":
            return float(body)
        case "$bytes":
            return base64.b64decode(body)
        case "$dtype" | "$device":
            import torch

            return getattr(torch, body) if tag == "$dtype" else torch.device(body)
    raise ValueError(f"unknown tag {tag!r}: written by a newer argosy?")


class _Encoder:
    def __init__(self, found: Callable[[str, Any], object] | None) -> None:
        self._found = found
        self.tensors: dict[str, Any] = {}
        self._seen: dict[Any, str] = {}
        self._inside: set[int] = set()
        torch = sys.modules.get("torch")
        self._tensor_kinds = () if torch is None else torch.Tensor

    def value(self, value: Any, path: tuple[Any, ...]) -> Any:
        if type(value) in _SCALARS:
            return value
        if isinstance(value, self._tensor_kinds):  # most of a state: training waits meanwhile
            return {"$tensor": self._tensor(value.detach(), path)}
        if isinstance(value, bool | int | str):  # IntEnum, StrEnum, numpy.str_
            return _plain(value)
        if isinstance(value, float):
            return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
        if isinstance(value, bytes | bytearray):
            return {"$bytes": base64.b64encode(value).decode()}
        if isinstance(value, Mapping | list | tuple):
            return self._container(value, path)
        return self._foreign(value, path)

    def _container(self, value: Any, path: tuple[Any, ...]) -> Any:
        if id(value) in self._inside:
            raise InputError(f"state{_shown(path)} contains itself; a checkpoint holds a tree")
        self._inside.add(id(value))
        try:
            if isinstance(value, Mapping):
                return self._mapping(value, path)
            items = [self.value(item, (*path, index)) for index, item in enumerate(value)]
            return {"$tuple": items} if isinstance(value, tuple) else items
        finally:
            self._inside.discard(id(value))

    def _mapping(self, value: Mapping[Any, Any], path: tuple[Any, ...]) -> Any:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: self.value(item, (*path, key)) for key, item in value.items()}
        for key in value:
            if type(key) not in (*_SCALARS, float, tuple):
                raise InputError(f"state{_shown(path)} has the key {key!r}: keys are strings, numbers or tuples")
        pairs = value.items()
        return {"$dict": [[self.value(key, path), self.value(item, (*path, key))] for key, item in pairs]}

    def _foreign(self, value: Any, path: tuple[Any, ...]) -> Any:
        import numpy
        import torch

        if isinstance(value, numpy.ndarray) and value.dtype.kind in "biufc" and not numpy.ma.isMaskedArray(value):
            return {"$ndarray": self._tensor(torch.from_numpy(numpy.array(value, order="C")), path)}
        if isinstance(value, numpy.generic):
            return self.value(value.item(), path)
        if isinstance(value, torch.dtype):
            return {"$dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"$device": str(value)}
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise InputError(
            f"state{_shown(path)} is a {kind}: a checkpoint holds tensors, arrays, numbers, strings, lists and "
            "dicts; save its state_dict() or its numbers instead"
        )

    def _tensor(self, tensor: Any, path: tuple[Any, ...]) -> str:
        _check_kind(tensor, path)
        same = _memory(tensor)
        if same in self._seen:
            return self._seen[same]
        name = "/".join(_segment(key) for key in path)
        self.tensors[name] = tensor
        if self._found is not None:
            self._found(name, tensor)
        if same is not None:
            self._seen[same] = name
        return name


def _check_kind(tensor: Any, path: tuple[Any, ...]) -> None:
    import torch

    if type(tensor) is torch.Tensor and tensor.layout is torch.strided and not (tensor.is_quantized or tensor.is_meta):
        return
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    kind = type(tensor).__name__
    if kind == "ShardedTensor":
        raise InputError(
            f"state{_shown(path)} is a ShardedTensor, the old form of sharding: shard with fully_shard (FSDP2), give "
            "FSDP1 a device_mesh so that its sharded state dict holds DTensors, or save the full state dict"
        )
    local = local_of(tensor)
    if is_traceable_wrapper_subclass(local) or type(local).__name__ == "LocalShardsWrapper":
        raise InputError(
            f"state{_shown(path)} is a {type(local).__qualname__}, which wraps other tensors: save those, or a "
            "plain copy"
        )
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise InputError(
            f"state{_shown(path)} is a {kind} of layout {tensor.layout}: a checkpoint holds dense tensors; save its "
            "parts, or use checkpoint.mode = 'opaque'"
        )
    if local.device.type == "meta":
        raise InputError(f"state{_shown(path)} is on the meta device: it has no data")


def _memory(tensor: Any) -> Any:
    """Equal for two tensors that are one; None: not known to be any other."""
    if not tensor.numel():
        return None
    placement: Any = None
    if is_dtensor(tensor):
        placement = (tuple(tensor.shape), tuple(tensor.placements), id(tensor.device_mesh))
    local = local_of(tensor)
    # The storage object and not its address: a rank may hold an empty shard of what others hold more of, and all
    # must find the same tensors tied.
    storage = local.untyped_storage()._cdata
    place = (storage, local.storage_offset(), local.shape, local.stride(), local.dtype, local.device)
    # A lazy conjugate or negative has other values in the same memory.
    return (*place, local.is_conj(), local.is_neg(), placement)


def _plain(value: Any) -> Any:
    # Not str(value): that of ``class Kind(str, Enum)`` is "Kind.NAME".
    return str.__str__(value) if isinstance(value, str) else int.__int__(value)


def _segment(key: Any) -> str:
    """Unique for each key: 0 and "0" differ, a slash in a key does not make a level."""
    if isinstance(key, str):
        return key.replace("~", "~0").replace("/", "~1")
    return f"~k{key!r}".replace("/", "~1")


def _shown(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key!r}]" for key in path)
