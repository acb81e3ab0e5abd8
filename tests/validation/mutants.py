"""Workflows with one thing changed at random: most are invalid, some are not."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from tests.validation import cases

Place = tuple[Any, Any]
"""A map or a list, and a key or an index of it."""
ODD = (
    None, 0, -1, 7, 1.5, True, "", "a", "5", "a.b", "x_y", ["a"], {"a": "b"}, [], {}, "{{item}}", "{{item.k}}",
    "{{steps.a.outputs.result}}", "{{tasks.a.outputs.parameters.said}}", "{{inputs.parameters.text}}",
    "{{workflow.name}}",
)  # fmt: skip


def mutant(seed: int, valid: list[str]) -> tuple[str, bytes]:
    """The name of the workflow that was changed and the YAML of the changed one."""
    chance = random.Random(seed)
    name = chance.choice(valid)
    document = yaml.safe_load(cases.manifest(name))
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(document["spec"]))
        if places:
            chance.choice(CHANGES)(chance, places)
    return name, yaml.safe_dump(document, sort_keys=False).encode()


def _places(tree: Any) -> Iterator[Place]:
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in list(keys):
        yield tree, key
        yield from _places(tree[key])


def _drop(chance: random.Random, places: list[Place]) -> None:
    holder, key = chance.choice(places)
    del holder[key]


def _replace(chance: random.Random, places: list[Place]) -> None:
    holder, key = chance.choice(places)
    holder[key] = copy.deepcopy(chance.choice(ODD))


def _copy_elsewhere(chance: random.Random, places: list[Place]) -> None:
    (to, key), (source, other) = chance.choice(places), chance.choice(places)
    to[key] = copy.deepcopy(source[other])


def _rename(chance: random.Random, places: list[Place]) -> None:
    texts = [(holder, key) for holder, key in places if isinstance(holder[key], str) and holder[key]]
    holder, key = chance.choice(texts)
    other, place = chance.choice(texts)
    holder[key] = chance.choice((other[place], holder[key] + "x", holder[key].replace("a", "b"), "1" + holder[key]))


def _swap(chance: random.Random, places: list[Place]) -> None:
    lists = [holder for holder, _ in places if isinstance(holder, list) and len(holder) > 1]
    if lists:
        chosen = chance.choice(lists)
        first, second = chance.sample(range(len(chosen)), 2)
        chosen[first], chosen[second] = chosen[second], chosen[first]


def _twice(chance: random.Random, places: list[Place]) -> None:
    lists = [holder for holder, _ in places if isinstance(holder, list)]
    if lists:
        chosen = chance.choice(lists)
        chosen.append(copy.deepcopy(chance.choice(chosen)))


def _move_key(chance: random.Random, places: list[Place]) -> None:
    (to, _), (source, key) = chance.choice(places), chance.choice(places)
    if isinstance(to, dict) and isinstance(key, str):
        to[key] = copy.deepcopy(source[key])


CHANGES: tuple[Callable[[random.Random, list[Place]], None], ...] = (
    _drop, _replace, _copy_elsewhere, _rename, _rename, _swap, _twice, _move_key,
)  # fmt: skip
