"""The programs that start the ranks of a training."""

from __future__ import annotations

from typing import Final

TORCH: Final = ("torchrun", "torch.distributed.launch")
"""They exit with 1 whatever their ranks exited with."""
MPI: Final = ("mpirun", "mpiexec", "orterun", "horovodrun")
LAUNCHERS: Final = (*TORCH, "accelerate", "deepspeed", *MPI)
TRAINERS: Final = (*LAUNCHERS, *("colossalai", "composer", "axolotl", "llamafactory-cli", "ft_launcher", "dlrover-run"))
"""Launchers, and the commands of libraries that start one."""
