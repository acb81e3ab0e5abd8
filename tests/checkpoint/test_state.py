"""What goes into a state comes out, stored once and cut evenly; what cannot is refused by its path."""

from __future__ import annotations

import enum
import random
from math import prod
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpointer import Checkpointer
from argosy.steps.contract.errors import InputError
from tests.checkpoint.test_checkpointer import same

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")


pytestmark = pytest.mark.usefixtures("outside")


def test_every_kind_of_value_comes_back(tmp_path: Path) -> None:
    weights = torch.randn(300, 7, dtype=torch.float64)
    state = {
        "scalars": {
            "i": 3,
            "big": 1 << 80,
            "f": 0.1,
            "inf": float("inf"),
            "nan": float("nan"),
            "none": None,
            "b": True,
        },
        "text": "Größe\u0000\n",
        "bytes": b"\x00\xff",
        "nested": [1, (2, [3, ()]), {}],
        "keys": {
            0: "zero",
            "0": "text",
            (1, 2): "pair",
            "$tensor": "not a tag",
            "a/b": torch.ones(1),
            "a": {"b": torch.zeros(1)},
        },
        "tensors": [
            torch.tensor(5),
            torch.empty(0, 3),
            torch.ones(2, 3, dtype=torch.bfloat16),
            torch.tensor([True]),
            torch.arange(6, dtype=torch.int8).reshape(2, 3).t(),
            weights[::2, 1:3],
            torch.tensor([1 + 2j]),
        ],
        "array": numpy.arange(6, dtype=numpy.uint16).reshape(2, 3),
        "arrays": [numpy.array(2.5), numpy.arange(6).reshape(2, 3).T, numpy.arange(4)[::-1], numpy.zeros((0, 2))],
        "number": numpy.float32(0.5).item(),
        "dtype": torch.bfloat16,
        "device": torch.device("cpu"),
    }
    Checkpointer(tmp_path / "ckpts").save(3, state)
    restored = Checkpointer(tmp_path / "ckpts").restore()
    assert restored is not None
    assert restored.step == 3
    assert same(state, restored.state)
    assert not [path for path in (tmp_path / "ckpts").rglob("*") if path.suffix in (".pt", ".pkl")]


class Phase(str, enum.Enum):  # noqa: UP042
    """As scripts name a state of theirs; str() of it is ``Phase.WARM``."""

    WARM = "warm"


class Code(enum.IntEnum):
    DONE = 3


def test_a_value_that_is_a_text_or_number_of_its_own_kind_comes_back_as_that(tmp_path: Path) -> None:
    state = {"phase": Phase.WARM, "code": Code.DONE, "name": numpy.str_("n")}
    Checkpointer(tmp_path).save(1, state)
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert restored.state == {"phase": "warm", "code": 3, "name": "n"}


def test_tied_weights_stay_tied_and_are_stored_once(tmp_path: Path) -> None:
    weight = torch.randn(1000, 100)
    saved = Checkpointer(tmp_path).save(1, {"embedding": weight, "head": weight})
    assert saved.bytes < 1.2 * weight.numel() * 4
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert restored.state["embedding"] is restored.state["head"]
    assert torch.equal(restored.state["head"], weight)


def test_large_tensors_are_cut_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from argosy.steps.state import plan as tensor_plan

    monkeypatch.setattr(tensor_plan, "PIECE_BYTES", 4000)
    monkeypatch.setattr(tensor_plan, "FILE_BYTES", 10_000)
    state = {"w": torch.randn(333, 11), "v": torch.randn(5), "wide": torch.randn(2, 5000)}
    Checkpointer(tmp_path).save(1, state)
    restored = Checkpointer(tmp_path).restore()
    assert restored is not None
    assert same(state, restored.state)
    assert len(list(tmp_path.rglob("*.safetensors"))) == 4


@pytest.mark.parametrize("world_size", [1, 2, 3, 8, 100])
def test_the_plan_covers_everything_once_and_evenly(world_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from argosy.steps.state import plan as tensor_plan
    from argosy.steps.state.plan import TensorFacts, plan

    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    monkeypatch.setattr(tensor_plan, "PIECE_BYTES", 1 << 16)
    monkeypatch.setattr(tensor_plan, "FILE_BYTES", 1 << 18)
    facts = [
        TensorFacts(f"t{n}", "float32", tuple(chance.randrange(1, 90) for _ in range(chance.randrange(4))), 4)
        for n in range(150)
    ]
    files = plan(facts, world_size)
    assert plan(list(reversed(facts)), world_size) == files
    pieces = [piece for rank in files for file in rank for piece in file]
    assert len({piece.name for piece in pieces}) == len(pieces)
    for fact in facts:
        rows = sorted((p.offset[0], p.shape[0]) for p in pieces if p.tensor == fact.name and p.shape)
        assert sum(p.size for p in pieces if p.tensor == fact.name) == prod(fact.shape) * fact.itemsize
        at = 0
        for start, length in rows:
            assert start == at
            at += length
    loads = [sum(piece.size for file in rank for piece in file) for rank in files]
    assert max(loads) <= sum(loads) / world_size + max(piece.size for piece in pieces)


def test_no_file_mixes_what_different_ranks_load() -> None:
    from argosy.steps.state.plan import Held, TensorFacts, plan

    # As FSDP2 and Adam have it: shards of every matrix on 8 ranks, and its number of steps on all of them.
    facts = []
    for n in range(48):
        shards = tuple(Held((1024 * rank, 0), (1024, 1024), (0, 0), (rank,)) for rank in range(8))
        facts.append(TensorFacts(f"{n}/moment", "float32", (8192, 1024), 4, shards, "Shard(0)"))
        facts.append(TensorFacts(f"{n}/step", "float32", (), 4))
    files = [file for rank in plan(facts, 8) for file in rank]
    assert all(len({piece.tensor.split("/")[1] for piece in file}) == 1 for file in files)
    steps = [file for file in files if file[0].tensor.endswith("step")]
    assert [len(file) for file in steps] == [48], "small ones lie together: all ranks ask for them"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "builtins.object"),
        (lambda: 1, "function"),
        ({1, 2}, "set"),
        (torch.nn.Linear(1, 1), "Linear"),
        (numpy.ma.array([1.0, 2.0], mask=[False, True]), "MaskedArray"),
        (torch.ones(2, 2).to_sparse(), "sparse"),
        (torch.empty(2, device="meta"), "meta"),
    ],
)
def test_what_has_no_place_is_refused_by_its_path(tmp_path: Path, value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Checkpointer(tmp_path).save(1, {"a": [{"b": value}]})
    assert "['a'][0]['b']" in str(caught.value)
    assert Checkpointer(tmp_path).restore() is None


def test_a_state_that_contains_itself_is_refused(tmp_path: Path) -> None:
    state: dict[str, Any] = {}
    state["me"] = state
    with pytest.raises(InputError, match="contains itself"):
        Checkpointer(tmp_path).save(1, state)
