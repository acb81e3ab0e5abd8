"""MEM: memory, ``/dev/shm``, GPUs and other resources of a pod."""

from __future__ import annotations

from argosy.workflows.lint.rules.memory import devices, memlock, quantities, requests, shared_memory

__all__ = ["devices", "memlock", "quantities", "requests", "shared_memory"]
