"""The byte-level GPT: its size, its shapes, and that no byte sees the future."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "stdlib-gpt"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    sys.path.insert(0, str(EXAMPLE))
    try:
        import model
    finally:
        sys.path.remove(str(EXAMPLE))
        sys.modules.pop("model", None)
    return model


def test_about_a_million_parameters_and_a_tied_head(example: ModuleType) -> None:
    gpt = example.GPT(example.Shape())
    assert 0.9e6 < gpt.parameter_count() < 1.1e6
    assert gpt.head.weight is gpt.byte.weight


def test_logits_for_every_position(example: ModuleType) -> None:
    import torch

    gpt = example.GPT(example.Shape())
    for time in (1, 2, 128):
        tokens = torch.randint(256, (3, time), generator=torch.Generator().manual_seed(time))
        assert gpt(tokens).shape == (3, time, 256)


def test_an_untrained_model_knows_nothing(example: ModuleType) -> None:
    import torch

    torch.manual_seed(7)
    inputs, targets = torch.randint(256, (2, 8, 128))
    loss = example.next_byte_loss(example.GPT(example.Shape())(inputs), targets).item()
    assert loss == pytest.approx(5.545, abs=0.2)  # ln 256


def test_a_byte_does_not_see_the_future(example: ModuleType) -> None:
    import torch

    torch.manual_seed(7)
    gpt = example.GPT(example.Shape()).eval()
    tokens = torch.randint(256, (1, 64))
    changed = tokens.clone()
    changed[0, 40] = (changed[0, 40] + 1) % 256
    with torch.no_grad():
        before, after = gpt(tokens), gpt(changed)
    assert torch.equal(before[0, :40], after[0, :40])
    assert not torch.equal(before[0, 40:], after[0, 40:])


def test_it_learns_a_pattern(example: ModuleType) -> None:
    import torch

    torch.manual_seed(7)
    torch.set_num_threads(1)
    gpt = example.GPT(example.Shape(layers=1, width=32, heads=2))
    optimizer = torch.optim.AdamW(gpt.parameters(), lr=1e-2)
    text = torch.tensor(list(b"abcabd" * 12))[None]
    for _ in range(60):
        loss = example.next_byte_loss(gpt(text[:, :-1]), text[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1  # after "ab" only the byte three places back tells c from d
