"""What this machine has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

NVIDIA_SMI_SECONDS = 10


def gpus() -> int:
    """NVIDIA GPUs that can be used here; 0 without driver or device."""
    if shutil.which("nvidia-smi"):
        try:
            listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, timeout=NVIDIA_SMI_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return 0
        if listed.returncode == 0:
            return sum(1 for line in listed.stdout.splitlines() if line.startswith(b"GPU "))
    return sum(1 for path in Path("/dev").glob("nvidia[0-9]*"))
