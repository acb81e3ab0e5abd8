"""The transport verdict over logs of every format that is known (composed.toml), and of hostile ones."""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.transport import ExpectedTransport
from argosy.steps.nccl import observed
from argosy.steps.nccl.observed import Observer
from argosy.steps.nccl.symptom import Symptom
from argosy.steps.nccl.symptoms import SYMPTOMS, symptom_of
from argosy.steps.nccl.transport import judge_transport, same_network

LOGS = tomllib.loads(Path(__file__).with_name("composed.toml").read_text())["log"]


def expected(**given: Any) -> ExpectedTransport:
    empty = {"network": "", "gdr": False, "nics": 0, "nic_gbps": 0, "nvls": False, "busbw_floor_gbs": 0.0}
    return ExpectedTransport(**{**empty, "profile": "p", **given})


def observe(lines: list[str]) -> Observer:
    observer = Observer()
    observer.feed(lines)
    return observer


@pytest.mark.parametrize("log", LOGS, ids=lambda log: str(log["name"]))
def test_the_verdict(log: dict[str, Any]) -> None:
    verdict = judge_transport(expected(**log["expect"]), observe(log["lines"].splitlines()).seen, log["nodes"])
    assert verdict.state == log["state"], verdict
    for said in log["says"]:
        assert said in verdict.sentence, verdict
    assert log.get("remedy", "") in verdict.remedy, verdict


@pytest.mark.parametrize("log", LOGS, ids=lambda log: str(log["name"]))
def test_lines_that_come_in_any_portions_say_the_same(log: dict[str, Any]) -> None:
    lines = log["lines"].splitlines()
    pieces = Observer()
    for line in lines:
        pieces.feed([line])
    assert pieces.seen == observe(lines).seen


@pytest.mark.parametrize(
    "prefix", ["[rank3]: ", "[1,26]<stdout>:", "2025-05-16T16:39:51.208Z ", "[trainer3]:", "w-0: "]
)
def test_what_launchers_put_before_a_line_does_not_matter(prefix: str) -> None:
    lines = LOGS[1]["lines"].splitlines()
    seen = observe([prefix + line for line in lines]).seen
    assert (seen.networks, list(seen.channels)) == (["Socket"], ["P2P/IPC", "NET/Socket"])


def test_what_nccl_read_is_told_as_it_read_it() -> None:
    said = [
        "NCCL_IB_TC set by environment to 106.",
        "NCCL_IB_HCA set to =mlx5_0",
        "NCCL_NET_GDR_LEVEL set by environment to SYS",
    ]
    seen = observe([f"h:1:2 [0] NCCL INFO {line}" for line in said]).seen
    assert seen.environment == {"NCCL_IB_TC": "106", "NCCL_IB_HCA": "=mlx5_0", "NCCL_NET_GDR_LEVEL": "SYS"}


def test_hosts_are_named_while_ranks_are_unambiguous() -> None:
    start = "{host}:1:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank {rank} nranks 2 cudaDev 0 busId 1 - Init START"
    world = [start.format(host="blue-0", rank=0), start.format(host="blue-1", rank=1)]
    channel = "blue-0:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0"
    assert observe([*world, channel]).seen.pairs == {("blue-0", "blue-1")}
    assert observe([*world, start.format(host="blue-2", rank=1), channel]).seen.pairs == {("blue-0", "rank 1")}


@pytest.mark.parametrize("symptom", SYMPTOMS, ids=lambda symptom: symptom.name)
def test_each_symptom_speaks_first_for_its_example(symptom: Symptom) -> None:
    assert symptom_of(symptom.example) is symptom
    assert not symptom.meaning.endswith(".")
    assert symptom.remedy.endswith(".")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("IB", "IBext_v8", True),
        ("IB", "ib", True),
        ("Libfabric", "AWS Libfabric", True),
        ("IB", "gIB", False),
        ("GPUDirectTCPX", "GPUDirectTCPX_v7", True),
        ("IB", "Socket", False),
        ("FasTrak", "gIB", False),
    ],
)
def test_names_of_one_network(one: str, other: str, same: bool) -> None:
    assert same_network(one, other) == same_network(other, one) == same


def test_a_log_of_any_size_is_read_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 200
    monkeypatch.setattr(observed, "MOST_FACTS", limit)
    observer = Observer()
    for index in range(limit * 3):
        observer.feed(
            [
                f"host-{index}:1:1 [0] NCCL INFO Channel 00 : {index}[0] -> {index + 1}[0] [send] via NET/N{index}/1",
                f"host-0:{index}:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[0] [send] via NET/N0/{index}",
                f"host-0:1:1 [0] file.cc:{index} NCCL WARN trouble {index} {'x' * 3000}",
                f"host-0:1:1 [0] NCCL INFO NCCL_X{index} set by environment to {'y' * 3000}",
                f"host-0:1:1 [0] NCCL INFO Using network N{index}",
            ]
        )
    seen = observer.seen
    sizes = [seen.hosts, seen.hosts["host-0"], seen.pairs, seen.channels, seen.environment, seen.networks]
    assert all(len(each) <= limit for each in sizes)
    assert len(seen.channels["NET/N0"].devices) <= limit
    assert len(seen.warnings) == observed.MOST_WARNINGS
    assert max(map(len, [*seen.warnings, *seen.environment.values()])) == observed.LONGEST


def test_no_line_ends_the_reading() -> None:
    """Lines cut and mixed at random places, as ranks that share a pipe write them."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    lines = [line for log in LOGS for line in log["lines"].splitlines()]
    for _ in range(3000):
        one, other = chance.choice(lines), chance.choice(lines)
        mixed = one[: chance.randrange(len(one) + 1)] + other[chance.randrange(len(other) + 1) :]
        seen = observe([mixed, re.sub(r"\d", lambda _: str(chance.randrange(10)), mixed)]).seen
        assert judge_transport(expected(network="IB", gdr=True, nics=8, nvls=True), seen, 2).sentence
