"""An arena pinned for a GPU: copies then go straight into it, at the full speed of the link and without waiting."""

from __future__ import annotations

import contextlib
from typing import Any

from argosy.steps.checkpointer.arena import Arena

_PORTABLE = 1
"""cudaHostRegisterPortable: pinned for every device of this process, not only the current one."""


def pin(arena: Arena, device: Any) -> str:
    """Pin the arena's map, if it is not yet; "", or why it could not be done: CUDA then copies everything twice.

    ``device``: a torch.device of type ``cuda`` that this process uses. What is pinned stays so until the arena grows
    or closes.
    """
    if arena.unpin is not None:
        return ""
    import torch

    # Registering makes a context on the current device: of several GPUs it must be one that the script has.
    with torch.cuda.device(device):
        runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        address = arena.address
        code = int(runtime.cudaHostRegister(address, arena.size, _PORTABLE))
        if code == 0:
            arena.unpin = lambda: runtime.cudaHostUnregister(address)
            return ""
        # The runtime keeps the error for whoever asks next, which would be the script's next kernel.
        with contextlib.suppress(RuntimeError):
            torch.ones(1, device=device)
    return f"cudaHostRegister of {arena.size / 1e9:.1f} GB failed with CUDA error {code}"
