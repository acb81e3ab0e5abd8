"""Callbacks that tell argosy each step, for trainers whose printed progress would have to be read otherwise.

    from argosy.integrations import HFCallback          # transformers.Trainer(..., callbacks=[HFCallback()])
    from argosy.integrations import LightningCallback   # lightning.Trainer(..., callbacks=[LightningCallback()])

Neither is needed for checkpoints: those are files, whatever is told. Outside argosy they do nothing.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from argosy.steps.progress import report

__all__ = ["HFCallback", "LightningCallback"]

if TYPE_CHECKING:
    HFCallback: type[Any]
    LightningCallback: type[Any]


def __getattr__(name: str) -> Any:
    # The libraries load when their callback is asked for, and only then.
    if name == "HFCallback":
        return _hugging_face()
    if name == "LightningCallback":
        return _lightning()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it offers {', '.join(__all__)}")


@cache
def _hugging_face() -> type[Any]:
    from transformers import TrainerCallback

    class HFCallback(TrainerCallback):  # type: ignore[misc]
        """For Hugging Face's Trainer: each optimizer step, with the loss where the Trainer logs one."""

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            """An optimizer step is done."""
            report(state.global_step, end_step=state.max_steps)

        def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
            """The Trainer logs the mean loss since it did so last."""
            loss = _number((logs or {}).get("loss"))
            if loss is not None:
                report(state.global_step, loss=loss, end_step=state.max_steps)

    return HFCallback


@cache
def _lightning() -> type[Any]:
    try:
        from lightning.pytorch import Callback
    except ImportError as error:
        try:
            from pytorch_lightning import Callback
        except ImportError:
            raise error from None  # the name that is mostly missing is the newer one

    class LightningCallback(Callback):  # type: ignore[misc]
        """For Lightning's Trainer: each optimizer step, with the loss as often as the Trainer logs."""

        def __init__(self) -> None:
            super().__init__()
            self._told = 0

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            """After a restore the first batch need not end a step."""
            self._told = int(trainer.global_step)

        def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            """A batch is done; several of them make a step when gradients are accumulated."""
            step = int(trainer.global_step)
            if step == self._told:
                return
            self._told = step
            loss = None
            if step % max(1, trainer.log_every_n_steps) == 0:  # reading it waits for the GPU
                loss = _number(outputs.get("loss") if isinstance(outputs, dict) else outputs)
            total = float(trainer.estimated_stepping_batches)
            report(step, loss=loss, end_step=int(total) if math.isfinite(total) and total > 0 else None)

    return LightningCallback


def _number(value: Any) -> float | None:
    """A number or a tensor of one element; None for what is none."""
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, RuntimeError):
        return None
