"""What the container asks of its node, into ``[gang.resources]``."""

from __future__ import annotations

from typing import Final

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.quantity import quantity

_OTHERS: Final = {
    "google.com/tpu": "TPUs are trained on with torch_xla or JAX",
    "aws.amazon.com/neuron": "Trainium is trained on with torch-neuronx",
    "habana.ai/gaudi": "Gaudi is trained on with Habana's torch and HCCL",
    "huawei.com/ascend": "Ascend is trained on with torch_npu and HCCL",
}
_LEAST: Final = 8
_PER_GPU: Final = 16
"""GiB where no limit is given: little enough for small nodes, and what is too little is found in the first minutes."""
_SHARED: Final = 2**30
"""Bytes at ``/dev/shm`` of a run that says nothing."""
_REMEDY: Final = "argosy's ranks are torchrun's over NCCL, RCCL or Gloo; keep this manifest"


def take_resources(container: Container, draft: Draft, account: Account) -> None:
    """Write ``[gang.resources]``.

    Raises:
        InputError: an accelerator for which argosy has no ranks.
    """
    limits, requests = container.limits.entries, container.requests.entries
    for name in [*limits, *(each for each in requests if each not in limits)]:
        chosen = limits.get(name) or requests.get(name)
        if chosen is None or not chosen.is_scalar:
            continue
        refused = next((why for each, why in _OTHERS.items() if name.lower().startswith(each)), None)
        if refused is not None:
            raise InputError(f"line {chosen.line}: {chosen.path}: {refused}; {_REMEDY}")
        if name == "cpu":
            _cpu(limits.get(name), requests.get(name), draft, account)
        elif name == "memory":
            _memory(limits.get(name), requests.get(name), draft, account)
        elif name == "ephemeral-storage":
            for each in (limits.get(name), requests.get(name)):
                if each is not None:
                    account.lost(each, "argosy does not ask for disk")
        elif "/" in name or name.startswith("hugepages-"):
            _extended(name, chosen, draft, account)
            for each in (limits.get(name), requests.get(name)):
                if each is not None and each is not chosen:
                    _same(each, chosen, account)
    account.lost(container.node.at("resources.claims"), "argosy asks for devices by gang.resources only")


def _cpu(limit: Node | None, request: Node | None, draft: Draft, account: Account) -> None:
    chosen = request if request else limit
    if chosen is None:
        return
    draft.put("gang.resources.cpu", chosen.text, chosen)
    account.kept(chosen, "gang.resources.cpu")
    if limit is not None and limit is not chosen:
        account.changed(limit, "no limit on CPU: throttled loaders starve GPUs", "gang.resources.cpu")


def _memory(limit: Node | None, request: Node | None, draft: Draft, account: Account) -> None:
    chosen = limit if limit else request
    if chosen is None:
        return
    if chosen.open:
        for each in (limit, request):
            if each is not None:
                account.by_hand(each, "the size is filled in later: write gang.resources.memory")
        return
    draft.put("gang.resources.memory", chosen.text, chosen)
    account.kept(chosen, "gang.resources.memory")
    if request is not None and request is not chosen:
        if quantity(request.text) == quantity(chosen.text):
            account.kept(request, "gang.resources.memory")
        else:
            account.changed(request, "memory is requested as it is limited", "gang.resources.memory")


def _extended(name: str, node: Node, draft: Draft, account: Account) -> None:
    gpu = name.endswith("/gpu") or "/mig-" in name or name.startswith("gpu.intel.com/")
    if not gpu or draft.get("gang.resources.gpu"):
        draft.put_item("gang.resources.extended", name, node.text, node)
        account.kept(node, "gang.resources.extended")
    elif node.number is None or node.number < 0:
        account.by_hand(node, "the number of GPUs is filled in later: write gang.resources.gpu")
    elif node.number:
        draft.put("gang.resources.gpu", node.number, node)
        if name != "nvidia.com/gpu":
            draft.put("gang.resources.gpu_resource", name, node)
        account.kept(node, "gang.resources.gpu")
    else:
        account.kept(node, "gang.resources.gpu", "none")


def _same(one: Node, other: Node, account: Account) -> None:
    if other.open:
        account.by_hand(one, "the number is filled in later: write gang.resources")
    elif one.text == other.text:
        account.kept(one, "gang.resources")
    else:
        account.changed(one, "devices are requested as they are limited", "gang.resources")


def fit_sizes(draft: Draft, account: Account, place: Node) -> None:
    """``/dev/shm`` counts towards the memory, so it must fit."""
    shared, memory = draft.get("gang.shm_size"), draft.get("gang.resources.memory")
    if not shared and memory and (quantity(memory) or _SHARED) < _SHARED:
        shared = "64Mi"
        draft.put("gang.shm_size", shared)
        draft.note("gang.shm_size", "what a container gets that mounts nothing there; a run's own 1Gi does not fit")
    size = quantity(shared) if shared else None
    limit = quantity(memory) if memory else None
    if limit is None:
        guess = f"{max(_LEAST, _PER_GPU * (draft.get('gang.resources.gpu') or 0), round(2 * (size or 0) / 2**30))}Gi"
        draft.put("gang.resources.memory", guess)
        draft.note("gang.resources.memory", "a guess: no limit is known")
        why = f"no memory limit is known, and a gang's pods have one: {guess} is a guess"
        account.advise(place["resources"], why, "gang.resources.memory")
        limit = quantity(guess)
    if size is not None and limit is not None and size > limit:
        draft.put("gang.shm_size", draft.get("gang.resources.memory"))
        why = "/dev/shm counts towards the memory limit and cannot exceed it: raise gang.resources.memory"
        account.advise(place["resources"], why, "gang.shm_size")
