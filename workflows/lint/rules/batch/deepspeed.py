"""DeepSpeed's configuration, in a ConfigMap or written by a script."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import also, rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.launch import Launch
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.workload import Workload
from argosy.workflows.manifests.world import ranks_of

# deepspeed/runtime/config.py: with an mpu the batch is divided among its data-parallel ranks only.
_OF_A_MODEL: Final = re.compile(r"parallel[-_]size|sequence[-_]parallel")
_WHOLE, _MICRO, _STEPS = "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"


@rule("BATCH001", Level.ERROR, on=Document)
def in_a_config_map(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """The three batch sizes of a DeepSpeed JSON."""
    if document.kind != "ConfigMap":
        return
    for value in document.root["data"].entries.values():
        for config in _configs(value.text):
            yield from _judge(config, value, _ranks(document, bundle))


@also("BATCH001", on=Container)
def in_a_script(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """The same in a file that the script writes."""
    if container.script is None or f'"{_WHOLE}"' not in container.script.text:
        return
    workload = bundle.workload(container.pod.document)
    worlds = {_replicas(each, workload, bundle) for each in bundle.launches(workload)} if workload else set()
    for config in _configs(container.script.text):
        yield from _judge(config, container.script, worlds.pop() if len(worlds) == 1 else None)


def _configs(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a text that hold a DeepSpeed batch size."""
    found: list[dict[str, Any]] = []
    if f'"{_WHOLE}"' not in text:
        return found
    decoder, position = json.JSONDecoder(), text.find("{")
    while position >= 0 and len(found) < 8:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            if isinstance(value, dict) and _WHOLE in value:
                found.append(value)
        position = text.find("{", end)
    return found


def _ranks(document: Document, bundle: Bundle) -> int | None:
    """Ranks of the only training beside the ConfigMap that mounts it."""
    worlds = set()
    for workload in bundle.workloads:
        mounts = any(
            volume.at("configMap.name").text == document.name
            for role in workload.roles
            if role.template
            for volume in role.pod.volumes.values()
        )
        if mounts:
            worlds |= {_replicas(each, workload, bundle) for each in bundle.launches(workload)}
    return worlds.pop() if len(worlds) == 1 else None


def _replicas(launch: Launch, workload: Workload, bundle: Bundle) -> int | None:
    """Ranks that the batch is divided among; None where a model may span several (Megatron, sequence parallelism)."""
    said = [*launch.process.words, launch.process.node.text]
    return None if any(_OF_A_MODEL.search(each) for each in said) else ranks_of(launch, workload, bundle)


def _judge(config: dict[str, Any], node: Node, ranks: int | None) -> Iterator[Problem]:
    whole, micro, steps = (_count(config.get(key)) for key in (_WHOLE, _MICRO, _STEPS))
    if whole is None or micro is None:
        return
    each = micro * (steps or 1)
    level = Level.WARNING if whole % each == 0 else None  # how many ranks it has, the program may say otherwise
    if ranks is not None and steps is not None and whole != each * ranks:
        message = f"{_WHOLE} {whole} is not {_MICRO} {micro} x {_STEPS} {steps} x {ranks} ranks = {each * ranks}"
        remedy = f"write {each * ranks}, or leave one of the three out"
    elif whole % each or (ranks is not None and whole % (micro * ranks)):
        by = f"{_MICRO} {micro}" + (f" x {_STEPS} {steps}" if steps else "") + (f" x {ranks} ranks" if ranks else "")
        message, remedy = f"{_WHOLE} {whole} is no multiple of {by}", "leave one of the three out"
    else:
        return
    yield Problem(node, f"{message}: DeepSpeed stops at its start", remedy, level=level, inside=f'"{_WHOLE}"')


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
