"""Ranks of one machine for functions of a test, forked or in this process."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.exact.gang import Gang, Gangs
from tests.exact.zygote import Zygote


@pytest.fixture(autouse=True)
def process_as_it_was() -> Any:
    """What ExactDataParallel sets for the whole process is set back after each test."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(deterministic)


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    with contextlib.closing(Zygote()) as started:
        yield started


@pytest.fixture
def ranks(tmp_path: Path, zygote: Zygote) -> Callable[..., list[Any]]:
    """``ranks("module:function", world, **arguments)``: what the function returns on every rank."""

    def run(what: str, world: int, **arguments: Any) -> list[Any]:
        gangs = Gangs(zygote.reap)
        name = os.urandom(4).hex()
        gang = gangs.add(Gang(name, world, zygote.start(what, world=world, folder=tmp_path, gang=name, **arguments)))
        gangs.wait(gang, 60.0, everyone=True)
        assert gang.own_codes() == {0}, gang.errors(tmp_path)
        return [json.loads((tmp_path / f"{name}-{rank}.answer").read_text()) for rank in range(world)]

    return run
