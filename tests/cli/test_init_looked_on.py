"""init where a script loads what it saved to look at it, or counts what is no count."""

from __future__ import annotations

import pytest

MODEL = """\
import argparse, os, torch
import torch.distributed as dist
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=%(epochs)d)
parser.add_argument("--evaluate", action="store_true")
args = parser.parse_args()
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.randn(100, 4), batch_size=4)
"""
LOOP = """
for epoch in range(args.epochs):
    for x in data:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        %s
"""
EVALUATES = """
def main():
    if args.evaluate:
        state = torch.load("out/last.pt")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        %s
    for epoch in range(args.epochs):
        for x in data:
            model(x).sum().backward()
            optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "out/last.pt")
main()
"""


@pytest.mark.parametrize("end", ["print(model(torch.randn(4, 4)))\n        return", "pass"], ids=["ends", "named so"])
def test_a_switch_with_which_it_is_only_looked_at_is_no_restart(argosy, tmp_path, end) -> None:
    """Each restart evaluated, and ended well with a model that was half trained."""
    (tmp_path / "train.py").write_text(MODEL % {"epochs": 10} + EVALUATES % end)
    code, out, err = argosy("init", "train.py")
    assert (code, "resume_args = [" in out) == (0, False), out + err


LOGGER = """
class Logger:
    def __init__(self):
        self.written = 0
        self.total = 0.0

    def log(self, loss):
        self.written += 1
        self.total += loss
        print(self.written, self.total)

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
model = torch.nn.parallel.DistributedDataParallel(model.cuda())
"""


@pytest.mark.parametrize(
    ("made", "lines"),
    [("logger = Logger()", True), ("if rank == 0:\n    logger = Logger()", False),
     ("logger = Logger() if rank == 0 else None", False)],
)  # fmt: skip
def test_the_lines_take_counts_of_what_each_rank_has(argosy, tmp_path, made, lines) -> None:
    """A rank without one ended each restart; a running loss is a tensor, which cannot be added to once it is loaded."""
    (tmp_path / "train.py").write_text(MODEL % {"epochs": 10} + LOGGER + made + "\n" + LOOP % "logger.log(loss)")
    code, out, err = argosy("init", "train.py")
    assert (code, 'logger.written = state["logger.written"]' in err) == (2, lines), out + err
    assert "logger.total" not in err


def test_a_loop_of_one_epoch_by_default_has_its_lines(argosy, tmp_path) -> None:
    (tmp_path / "train.py").write_text(MODEL % {"epochs": 1} + "step = 0\n" + LOOP % "step += 1")
    code, out, err = argosy("init", "train.py")
    assert (code, 'step = state["step"]' in err) == (2, True), out + err


def test_a_text_of_nothing_in_a_path_is_read(argosy, tmp_path) -> None:
    path = 'path = f"" + "/net.pt"\nother = os.path.join(f"", "net.pt")\n'
    (tmp_path / "train.py").write_text(
        MODEL % {"epochs": 9} + path + LOOP % 'torch.save(model.state_dict(), "out/a.pt")'
    )
    code, out, err = argosy("init", "train.py")
    assert code == 0, out + err
