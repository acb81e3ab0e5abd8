"""What else decides the bits of a gradient: set where it can be set, named where it changed."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path

import torch

from argosy.steps.contract.errors import InputError

_CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


def enforce(device: torch.device, threads: int) -> None:
    """Deterministic kernels only, and a fixed number of threads; both stay so for the whole process.

    Raises:
        InputError: cuBLAS was told to use workspaces that are not deterministic.
    """
    if device.type == "cuda":
        if os.environ.setdefault(_CUBLAS, ":4096:8") not in (":4096:8", ":16:8"):
            raise InputError(f"{_CUBLAS} = {os.environ[_CUBLAS]!r}: exact training needs :4096:8 or :16:8")
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(threads)


def check(threads: int) -> None:
    """What :func:`enforce` set is as it was.

    Raises:
        InputError: the script, or a library, changed it: names the setting.
    """
    if torch.get_num_threads() != threads:
        raise InputError(
            f"torch.set_num_threads({torch.get_num_threads()}) was called: sums over {threads} thread(s) "
            f"have other bits; give ExactDataParallel(threads={torch.get_num_threads()}) from the first step on"
        )
    if not torch.are_deterministic_algorithms_enabled() or torch.backends.cudnn.benchmark:
        raise InputError("deterministic algorithms were switched off, or cudnn.benchmark on, after ExactDataParallel")


def environment(device: torch.device) -> dict[str, str]:
    """Everything outside the script that is known to change bits; equal on all ranks and over the whole run."""
    facts = {
        "torch": torch.__version__,
        "device": device.type,
        "cpu": f"{_processor()} {torch.backends.cpu.get_cpu_capability()}",
        "threads": str(torch.get_num_threads()),
        "default dtype": str(torch.get_default_dtype()),
        "matmul precision": torch.get_float32_matmul_precision(),
        "MKL_CBWR": os.environ.get("MKL_CBWR", ""),
    }
    if device.type == "cuda":
        # The processor computes nothing that is trained then.
        del facts["cpu"], facts["MKL_CBWR"]
        facts |= {
            "device name": torch.cuda.get_device_name(device),
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),  # type: ignore[no-untyped-call]
            _CUBLAS: os.environ.get(_CUBLAS, ""),
        }
    return facts


def differences(was: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """``name: was → now`` for each entry that differs."""
    names = sorted({*was, *now})
    return [
        f"{name}: {was.get(name, 'unknown')} → {now.get(name, 'unknown')}"
        for name in names
        if was.get(name) != now.get(name)
    ]


def _processor() -> str:
    # Vector libraries choose their kernels by the processor's model, not only by its instruction set.
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
