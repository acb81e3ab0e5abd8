"""A restore into a given state: what is filled, what comes along, what is refused; one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpointer import Checkpointer
from argosy.steps.contract.errors import InputError
from argosy.steps.state.files import filled as file_bytes
from argosy.steps.state.files import read_into
from argosy.steps.state.share import layout_of, source_of
from argosy.steps.state.stored import STATE_PATH, state_bytes
from argosy.steps.state.tree import encode

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")


def filled(folder: Path, saved: Any, into: Any, **options: Any) -> Any:
    Checkpointer(folder).save(4, saved)
    restored = Checkpointer(folder).restore(into, **options)
    assert restored is not None
    assert restored.step == 4
    return restored.state


def test_tensors_are_filled_where_they_lie_and_values_come_along(tmp_path: Path) -> None:
    backing = torch.zeros(4, 6)
    into = {
        "w": backing[:, ::2],
        "transposed": torch.zeros(2, 3).t(),
        "p": torch.nn.Parameter(torch.zeros(3)),
        "list": [torch.zeros(2), 0, (torch.zeros(()),)],
        1: {"k": torch.zeros(1)},
        "array": numpy.zeros(3),
        "lr": 0.5,
        "betas": (0, 0),
    }
    saved = {
        "w": torch.randn(4, 3),
        "transposed": torch.randn(3, 2),
        "p": torch.ones(3),
        "list": [torch.ones(2), 7, (torch.tensor(3.0),)],
        1: {"k": torch.ones(1)},
        "array": numpy.arange(3.0),
        "lr": 0.25,
        "betas": (0.9, 0.99),
        "position": {"epoch": 2, "history": [1, 2], "seen": numpy.arange(2)},
    }
    state = filled(tmp_path, saved, into)
    assert torch.equal(backing[:, ::2], saved["w"])
    assert not backing[:, 1::2].any()
    assert torch.equal(into["transposed"], saved["transposed"])
    assert into["p"].tolist() == [1, 1, 1]
    assert into["p"].requires_grad
    assert into[1]["k"].tolist() == [1]
    assert state["list"][1] == 7
    assert state["list"][2][0].data_ptr() == into["list"][2][0].data_ptr()
    assert into["list"][2][0] == 3
    assert (state["lr"], state["betas"], state["position"]["epoch"]) == (0.25, (0.9, 0.99), 2)
    assert state["array"].tolist() == [0, 1, 2]
    assert state["position"]["seen"].tolist() == [0, 1]
    assert into["lr"] == 0.5, "the given tree itself keeps its numbers"


def test_model_optimizer_and_schedule_of_one_process(tmp_path: Path) -> None:
    def made() -> tuple[Any, Any, Any]:
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        return model, optimizer, torch.optim.lr_scheduler.MultiStepLR(optimizer, [2])

    def state(model: Any, optimizer: Any, schedule: Any) -> dict[str, Any]:
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict()}

    def step(model: Any, optimizer: Any, schedule: Any) -> None:
        optimizer.zero_grad()
        model(torch.arange(8.0).view(2, 4)).square().sum().backward()
        optimizer.step()
        schedule.step()

    whole, fresh = made(), made()
    for _ in range(3):
        step(*whole)
    Checkpointer(tmp_path).save(3, state(*whole))
    with pytest.raises(InputError, match=r"state\['optimizer'\]\['state'\]\[0\]\['step'\].*get_state_dict"):
        Checkpointer(tmp_path).restore(state(*fresh))
    step(*fresh)
    restored = Checkpointer(tmp_path).restore(state(*fresh))
    assert restored is not None
    fresh[1].load_state_dict(restored.state["optimizer"])
    fresh[2].load_state_dict(restored.state["schedule"])
    for parts in (whole, fresh):
        step(*parts)
    assert fresh[1].param_groups[0]["lr"] == whole[1].param_groups[0]["lr"] == pytest.approx(0.01)
    for mine, theirs in zip(fresh[0].state_dict().values(), whole[0].state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)


def test_ties_on_either_side(tmp_path: Path) -> None:
    one, other = torch.ones(3), torch.full((3,), 2.0)
    tied = torch.zeros(3)
    filled(tmp_path / "both", {"a": one, "b": one}, {"a": tied, "b": tied})
    assert tied.tolist() == [1, 1, 1]
    apart = {"a": torch.zeros(3), "b": torch.zeros(3)}
    filled(tmp_path / "untied-here", {"a": one, "b": one}, apart)
    assert apart["a"].tolist() == apart["b"].tolist() == [1, 1, 1]
    tied.zero_()
    filled(tmp_path / "twins", {"a": one, "b": one.clone()}, {"a": tied, "b": tied})
    assert tied.tolist() == [1, 1, 1]
    with pytest.raises(InputError, match=r"state\['b'\] is tied .* two that differ"):
        filled(tmp_path / "untied-there", {"a": one, "b": other}, {"a": tied, "b": tied})


@pytest.mark.parametrize(
    ("into", "words"),
    [
        ({"w": torch.zeros(2, 3), "new": torch.zeros(1)}, r"missing in the checkpoint: state\['new'\]"),
        ({"w": torch.zeros(2, 3), "new": 5}, r"missing in the checkpoint: state\['new'\]"),
        ({"w": torch.zeros(2, 3)}, r"not in the given state: state\['list'\]\[0\], state\['list'\]\[1\]"),
        ({"w": 1, "list": [torch.zeros(1), torch.zeros(1)]}, r"not in the given state: state\['w'\]"),
        ({"w": torch.zeros(2, 3), "list": [torch.zeros(1)]}, r"not in the given state: state\['list'\]\[1\]"),
        ({"w": torch.zeros(6), "list": [torch.zeros(1), torch.zeros(1)]}, r"'w': float32 \[2, 3\].*float32 \[6\] here"),
        (
            {"w": torch.zeros(2, 3).half(), "list": [torch.zeros(1), torch.zeros(1)]},
            r"float32 .* float16 \[2, 3\] here",
        ),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_filled(tmp_path: Path, into: dict[str, Any], words: str) -> None:
    Checkpointer(tmp_path).save(1, {"w": torch.ones(2, 3), "list": [torch.ones(1), torch.ones(1)]})
    with pytest.raises(InputError, match=words):
        Checkpointer(tmp_path).restore(into)
    assert not any(t.any() for t in [into["w"], *into.get("list", [])] if isinstance(t, torch.Tensor))


def test_not_strict_leaves_and_skips(tmp_path: Path) -> None:
    Checkpointer(tmp_path).save(1, {"w": torch.ones(2), "gone": torch.ones(2), "list": [torch.ones(1)], "n": 3})
    into = {"w": torch.zeros(2), "new": torch.zeros(2), "list": [torch.zeros(1), torch.zeros(1)], "m": "mine"}
    restored = Checkpointer(tmp_path).restore(into, strict=False)
    assert restored is not None
    assert into["w"].tolist() == [1, 1]
    assert into["new"].tolist() == [0, 0]
    assert [t.tolist() for t in restored.state["list"]] == [[1], [0]]
    assert (restored.state["n"], restored.state["m"]) == (3, "mine")
    assert "gone" not in restored.state


def test_only_the_files_that_are_needed_are_read_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from argosy.steps.state import plan

    monkeypatch.setattr(plan, "PIECE_BYTES", 400)
    monkeypatch.setattr(plan, "FILE_BYTES", 1000)
    state = {"a": {str(n): torch.randn(50) for n in range(10)}, "b": {str(n): torch.randn(50) for n in range(10)}}
    tree, tensors = encode(state)
    files = {STATE_PATH: state_bytes(1, tree, layout_of(tensors, 0, 3).tensors)}
    for rank in range(3):
        layouts = layout_of(tensors, rank, 3).files
        files |= {
            file.path: file_bytes(file, lambda block: source_of(tensors[block.piece.tensor], block)) for file in layouts
        }
    reads: list[str] = []

    def read(path: str) -> bytearray:
        reads.append(path)
        return bytearray(files[path])

    into = {"b": {str(n): torch.zeros(50) for n in range(3)}}
    read_into(read, into, strict=False)
    assert all(torch.equal(into["b"][name], state["b"][name]) for name in into["b"])
    assert len(set(reads)) == len(reads)
    assert 2 <= len(reads) <= 4 < len(files)


def test_anyone_can_read_the_files(tmp_path: Path) -> None:
    from safetensors import safe_open

    state = {"bf16": torch.randn(5, 3).bfloat16(), "bool": torch.tensor([True]), "f64": torch.randn(2).double()}
    state["fp8"], state["c"] = torch.randn(3).to(torch.float8_e5m2), torch.tensor([1 + 2j])
    Checkpointer(tmp_path).save(1, state)
    found = {}
    for path in tmp_path.rglob("*.safetensors"):
        with safe_open(path, "pt") as opened:
            found |= {name.split("@")[0]: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    assert found.keys() == state.keys()
    for name, tensor in state.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        assert found[name].view(torch.uint8).tolist() == tensor.view(torch.uint8).tolist()


def test_a_state_of_empty_tensors_only(tmp_path: Path) -> None:
    state = filled(
        tmp_path, {"e": torch.empty(0, 3), "f": torch.empty(2, 0)}, {"e": torch.ones(0, 3), "f": torch.ones(2, 0)}
    )
    assert (state["e"].shape, state["f"].shape) == ((0, 3), (2, 0))


def test_what_no_file_can_hold_is_refused_by_name(tmp_path: Path) -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    checkpointer = Checkpointer(tmp_path)
    with pytest.raises(InputError, match=r"'a/c' is of type complex128"):
        checkpointer.save(1, {"a": {"c": torch.zeros(2, dtype=torch.complex128)}})
    with pytest.raises(InputError, match=r"state\['t'\] is a TwoTensor, which wraps other tensors"):
        checkpointer.save(1, {"t": TwoTensor(torch.ones(2), torch.ones(2))})
