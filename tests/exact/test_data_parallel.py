"""The bits of a step do not depend on the number of ranks; what would make them depend on it is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from argosy import ExactDataParallel, ResumableLoader
from argosy.steps.contract.errors import InputError
from argosy.steps.exact.shard_sum import ShardSum
from tests.exact.training import FEATURES, Points

pytestmark = pytest.mark.torch
Ranks = Callable[..., list[Any]]


@pytest.mark.parametrize(
    ("what", "arguments"),
    [
        ("plain", {"shards": 6, "global_batch": 23}),
        ("plain", {"shards": 2, "global_batch": 9, "epochs": 1, "megabytes": 25}),
        ("branches", {"shards": 5, "global_batch": 11}),
        ("plain", {"shards": 6, "global_batch": 23, "megabytes": 25}),
    ],
    ids=[
        "batch norm and dropout",
        "more ranks than shards, small last step",
        "unused parameters and bf16",
        "several rounds in a message",
    ],
)
def test_the_same_bits_on_any_number_of_ranks(ranks: Ranks, what: str, arguments: dict[str, Any]) -> None:
    alone = ranks(f"tests.exact.cases:{what}", 1, **arguments)[0]
    for world in (2, 3):
        assert ranks(f"tests.exact.cases:{what}", world, **arguments) == [alone] * world


def test_ranks_that_cannot_agree_are_told_why(ranks: Ranks) -> None:
    for answer in ranks("tests.exact.cases:refused", 2, which="weights"):
        assert "rank 0 and rank 1 hold different weights: seed before the model is made" in answer
    for answer in ranks("tests.exact.cases:refused", 2, which="threads"):
        assert "rank 0 and rank 1 cannot compute the same bits: threads: 1 → 2" in answer


# ---- in this process


def loader_of(**given: Any) -> ResumableLoader:
    return ResumableLoader(Points(40), **{"global_batch_size": 16, "seed": 1, "virtual_shards": 4, **given})


def one_step(model: nn.Module, loader: ResumableLoader, **options: Any) -> float:
    step, shards = next(loader.shards())
    exact = ExactDataParallel(model, loader, **options)
    return exact.backward(step, shards, lambda b: F.cross_entropy(model(b[0]), b[1]))


def test_the_gradient_is_the_mean_over_the_step() -> None:
    torch.manual_seed(0)
    model = nn.Linear(FEATURES, 6).double()
    loader = loader_of(global_batch_size=15)
    step, shards = next(loader.shards())
    exact = ExactDataParallel(model, loader)
    loss = exact.backward(step, shards, lambda b: F.cross_entropy(model(b[0].double()), b[1]))
    assert model.weight.grad is not None
    found = model.weight.grad.clone()
    points, labels = (torch.cat([shard.batch[part] for shard in shards]) for part in (0, 1))
    model.zero_grad()
    whole = F.cross_entropy(model(points.double()), labels)
    whole.backward()
    torch.testing.assert_close(found, model.weight.grad)
    assert loss == pytest.approx(whole.item())


def test_the_order_of_the_sum_is_that_of_the_shards() -> None:
    huge = [torch.tensor([1e8]), torch.tensor([1.0]), torch.tensor([-1e8]), torch.tensor([1.0])]
    total = ShardSum([torch.zeros(1)], world_size=1, bucket_bytes=8)
    for each in huge:
        total.add([each])
    assert total.result()[0].item() == 1.0, "((1e8 + 1) - 1e8) + 1 in float32; another order gives 0 or 2"
    total.add([None])
    assert total.result()[0].item() == 0.0


def test_wrapped_models_are_refused(tmp_path: Any) -> None:
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    try:
        with pytest.raises(InputError, match="DistributedDataParallel: it adds gradients in an order"):
            ExactDataParallel(DistributedDataParallel(nn.Linear(2, 2)), loader_of())
    finally:
        dist.destroy_process_group()
    with pytest.raises(InputError, match="layer is a DataParallel"):
        ExactDataParallel(nn.ModuleDict({"layer": nn.DataParallel(nn.Linear(2, 2))}), loader_of())
    with pytest.raises(InputError, match="nothing to train"):
        ExactDataParallel(nn.Linear(2, 2).requires_grad_(False), loader_of())
    hooked = nn.Linear(2, 2)
    hooked.weight.register_post_accumulate_grad_hook(lambda _: None)
    with pytest.raises(InputError, match="parameter weight has a hook"):
        ExactDataParallel(hooked, loader_of())


class Counts(nn.Module):
    def __init__(self, *, by_name: bool) -> None:
        super().__init__()
        self.layer, self.by_name = nn.Linear(FEATURES, 6), by_name
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        if self.by_name:
            self.seen = self.seen + 1
        else:
            self.seen += 1
        return self.layer(points)


@pytest.mark.parametrize("by_name", [False, True])
def test_a_buffer_that_changes_is_refused_by_name(by_name: bool) -> None:
    with pytest.raises(InputError, match="buffer seen was changed by the forward pass"):
        one_step(Counts(by_name=by_name), loader_of())


def test_running_statistics_are_the_mean_over_the_shards() -> None:
    model = nn.Sequential(nn.Linear(FEATURES, 6), norm := nn.BatchNorm1d(6, momentum=1.0))
    seen: list[torch.Tensor] = []
    model[0].register_forward_hook(lambda module, given, made: seen.append(made.detach()))
    one_step(model, loader_of())
    torch.testing.assert_close(norm.running_mean, torch.stack([made.mean(dim=0) for made in seen]).mean(dim=0))
    assert norm.num_batches_tracked.item() == 1
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    norm.eval()
    one_step(model, loader_of())
    assert all(torch.equal(value, before[name]) for name, value in norm.named_buffers())


def test_what_is_changed_during_the_run_is_refused() -> None:
    model, loader = nn.Linear(FEATURES, 6), loader_of()
    steps = loader.shards()
    exact = ExactDataParallel(model, loader)
    loss_of = lambda b: F.cross_entropy(model(b[0]), b[1])  # noqa: E731
    exact.backward(*next(steps), loss_of)
    step, shards = next(steps)
    with pytest.raises(InputError, match=r"got shards \[\(2, 0\)"):
        exact.backward(step + 1, shards, loss_of)
    with pytest.raises(InputError, match="got shards"):
        exact.backward(step, shards[:-1] + shards[:1], loss_of)
    with pytest.raises(InputError, match=r"the loss has shape \(4,\)"):
        exact.backward(step, shards, lambda b: F.cross_entropy(model(b[0]), b[1], reduction="none"))
    torch.set_num_threads(2)
    with pytest.raises(InputError, match=r"set_num_threads\(2\)"):
        exact.backward(step, shards, loss_of)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(False)
    with pytest.raises(InputError, match="deterministic algorithms"):
        exact.backward(step, shards, loss_of)


def test_sparse_gradients_are_refused() -> None:
    table = nn.Embedding(40, 6, sparse=True)
    loader = loader_of()
    step, shards = next(loader.shards())
    with pytest.raises(InputError, match="sparse"):
        ExactDataParallel(table, loader).backward(step, shards, lambda b: F.cross_entropy(table(b[2]), b[1]))


def test_a_checkpoint_knows_what_its_bits_depend_on(capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Linear(FEATURES, 6)
    saved = ExactDataParallel(model, loader_of()).state_dict()
    ExactDataParallel(model, loader_of()).load_state_dict(saved)
    with pytest.raises(InputError, match=r"another recipe: seed: 1 → 2; virtual_shards: 4 → 8"):
        ExactDataParallel(model, loader_of(virtual_shards=8, seed=2)).load_state_dict(saved)
    with pytest.raises(InputError, match="threads: 1 → 2"):
        ExactDataParallel(model, loader_of(), threads=2).load_state_dict(saved)
    other = {**saved, "environment": {**saved["environment"], "torch": "2.6.0"}}
    with pytest.raises(InputError, match=r"torch: 2\.6\.0 → "):
        ExactDataParallel(model, loader_of()).load_state_dict(other)
    ExactDataParallel(model, loader_of(), strict=False).load_state_dict(other)
    assert "from here on other bits" in capsys.readouterr().out
