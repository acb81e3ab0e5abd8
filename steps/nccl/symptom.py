"""One row of what is known about NCCL's lines."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from argosy.steps.contract.causes import Cause


class Fault(StrEnum):
    """What a symptom can be the reason of."""

    NETWORK = "network"
    """Another network than expected."""
    PLUGIN = "plugin"
    """The same, where the expected one is a plugin's; NCCL's own networks need none."""
    GDR = "gdr"
    DEVICES = "devices"
    LOCAL = "local"
    """GPUs of one node talk over the host's memory."""
    NVLS = "nvls"
    FATAL = "fatal"
    """Nothing works."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A line that matches ``regex`` says that ``meaning``."""

    name: str
    regex: str
    example: str
    """A line it must match (checked by the tests)."""
    fault: Fault
    meaning: str
    remedy: str
    cause: Cause | None = None
