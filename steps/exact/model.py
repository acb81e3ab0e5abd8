"""What a model must be so that the gradient of a virtual shard is the same on every rank."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.parallel import DataParallel, DistributedDataParallel

from argosy.steps.contract.errors import InputError

WHY_NOT_WRAPPED = (
    "it adds gradients in an order that depends on the number of ranks; give the bare module to ExactDataParallel, "
    "which replaces the wrapper"
)


def check_model(model: nn.Module) -> torch.device:
    """The one device of the model.

    Raises:
        InputError: wrapped by DDP or FSDP, sharded, on several devices, without anything to train, or with an
            optimizer inside the backward pass.
    """
    for name, module in model.named_modules():
        kind = type(module).__name__
        if isinstance(module, DistributedDataParallel | DataParallel) or "FullyShardedDataParallel" in kind:
            raise InputError(f"{name or 'the model'} is a {kind}: {WHY_NOT_WRAPPED}")
    for name, parameter in model.named_parameters():
        if hasattr(parameter, "device_mesh"):
            raise InputError(f"parameter {name} is a {type(parameter).__name__} (FSDP2 or tensor parallel): "
                             "exact training needs the whole model on every rank")  # fmt: skip
        if parameter.requires_grad and getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise InputError(f"parameter {name} has a hook that steps an optimizer in the backward pass: "
                             "the gradient is whole only after all virtual shards")  # fmt: skip
    devices = {tensor.device for tensor in (*model.parameters(), *model.buffers())}
    if len(devices) != 1 or not any(parameter.requires_grad for parameter in model.parameters()):
        raise InputError(f"the model has nothing to train, or lies on several devices ({len(devices)}): "
                         "exact training needs one device per rank")  # fmt: skip
    return devices.pop()


class Buffers:
    """A model's buffers during one step: each virtual shard sees them as they were when the step began.

    Running statistics of batch and instance norms become the mean over the shards, each weighted by its samples.
    Every other buffer must stay as it is: what a forward pass leaves in it depends on who ran which shard.
    """

    def __init__(self, model: nn.Module) -> None:
        norms = [module for module in model.modules() if isinstance(module, _NormBase) and module.training]
        self.statistics: list[Tensor] = []
        self._counters: list[Tensor] = []
        for norm in norms:
            if norm.running_mean is not None and norm.running_var is not None:
                self.statistics += [norm.running_mean, norm.running_var]
            if norm.num_batches_tracked is not None:
                self._counters.append(norm.num_batches_tracked)
        self._before = [each.clone() for each in (*self.statistics, *self._counters)]
        moving = {id(each) for each in (*self.statistics, *self._counters)}
        self._model = model
        self._still = {name: (each, each._version) for name, each in model.named_buffers() if id(each) not in moving}

    def restore(self) -> None:
        """As they were when the step began."""
        for each, before in zip((*self.statistics, *self._counters), self._before, strict=True):
            each.copy_(before)

    def weighted(self, weight: float) -> list[Tensor]:
        """This shard's part of the mean of the running statistics."""
        return [each.to(torch.promote_types(each.dtype, torch.float32)) * weight for each in self.statistics]

    def settle(self, means: list[Tensor]) -> None:
        """The statistics of the whole step; each counter goes on by one, as by one batch."""
        self.restore()
        for each, mean in zip(self.statistics, means, strict=True):
            each.copy_(mean)
        for counter in self._counters:
            counter += 1

    def check_still(self) -> None:
        """No other buffer was changed.

        Raises:
            InputError: names the buffer.
        """
        for name, buffer in self._model.named_buffers():
            known = self._still.get(name)
            if known is not None and (known[0] is not buffer or buffer._version != known[1]):
                raise InputError(
                    f"buffer {name} was changed by the forward pass: its value would depend on which rank ran which "
                    "shard. Running statistics of batch norms are averaged; keep anything else out of buffers"
                )
