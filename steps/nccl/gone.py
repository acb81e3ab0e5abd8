"""Names that NCCL never read, reads no more, or reads under another name.

Sources: NVIDIA/nccl docs/userguide/source/env.rst ("removed in", "renamed", "deprecated") and the string tables of
libnccl.so.2 2.17.1 to 2.32.3 (``scripts/nccl_names.py``).
"""

from __future__ import annotations

REMOVED: dict[str, tuple[str, str]] = {
    "NCCL_TREE_THRESHOLD": ("2.5", "NCCL chooses between tree and ring itself"),
    "NCCL_LL_THRESHOLD": ("2.5", "NCCL chooses the protocol itself"),
    "NCCL_SINGLE_RING_THRESHOLD": ("2.3", "NCCL chooses the number of channels itself"),
    "NCCL_CHECKS_DISABLE": ("2.17", "argument checks are off unless NCCL_CHECK_MODE asks for them"),
    "NCCL_SHM_USE_CUDA_MEMCPY": ("2.30", "the copy path of the shared-memory transport is chosen by NCCL"),
    "NCCL_WORK_FIFO_DEPTH": ("2.22", "NCCL_WORK_FIFO_BYTES counts bytes, not entries; leave it unset"),
}
"""Name -> (first version without it, what takes its place). A version before the oldest wheel is the guide's word."""

MISNAMED: dict[str, str] = {
    "NCCL_IB_CUDA_SUPPORT": "NCCL_NET_GDR_LEVEL",
    "NCCL_IB_GDR_LEVEL": "NCCL_NET_GDR_LEVEL",
    "NCCL_GDR_LEVEL": "NCCL_NET_GDR_LEVEL",
    "NCCL_MIN_CHANNELS": "NCCL_MIN_CTAS",
    "NCCL_MAX_CHANNELS": "NCCL_MAX_CTAS",
}
"""Renamed in 2.4, or never right -> the name that is read."""

DEPRECATED: dict[str, str] = {
    "NCCL_MIN_NRINGS": "NCCL_MIN_CTAS",
    "NCCL_MAX_NRINGS": "NCCL_MAX_CTAS",
    "NCCL_MIN_NCHANNELS": "NCCL_MIN_CTAS",
    "NCCL_MAX_NCHANNELS": "NCCL_MAX_CTAS",
}
"""Still read, deprecated since 2.17 -> successor."""

TORCH_ALIASES: dict[str, str] = {
    "NCCL_BLOCKING_WAIT": "TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_ASYNC_ERROR_HANDLING": "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_DESYNC_DEBUG": "TORCH_NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING": "TORCH_NCCL_ENABLE_TIMING",
    "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK": "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
}
"""torch's own variables under the name they had before torch 2.2 (https://github.com/pytorch/pytorch/pull/114077)."""

RECORDER_ALIASES: dict[str, str] = {
    "TORCH_NCCL_TRACE_BUFFER_SIZE": "TORCH_FR_BUFFER_SIZE",
    "TORCH_NCCL_DUMP_ON_TIMEOUT": "TORCH_FR_DUMP_ON_TIMEOUT",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "TORCH_FR_DUMP_TEMP_FILE",
    "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "TORCH_FR_WAIT_TIMEOUT_DUMP_MILSEC",
    "TORCH_NCCL_TRACE_CPP_STACK": "TORCH_FR_CPP_STACK",
}
"""The flight recorder's names before and after it left NCCL's process group; torch 2.15 reads both."""

FAST_PATHS: frozenset[str] = frozenset(
    {
        "NCCL_IB_DISABLE",
        "NCCL_P2P_DISABLE",
        "NCCL_P2P_DIRECT_DISABLE",
        "NCCL_SHM_DISABLE",
        "NCCL_NET_GDR_LEVEL",
        "NCCL_NET_GDR_READ",
        "NCCL_DMABUF_ENABLE",
        "NCCL_PXN_DISABLE",
    }
)
"""Names that turn a fast path off once they are read: a slip that kept them from it is reported, not mended."""
