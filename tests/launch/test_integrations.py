"""The callbacks under the real libraries, where they are installed: which steps and losses a rank tells its parent."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract import env

HUGGING_FACE = """
import torch, transformers
from argosy.integrations import HFCallback
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(2, 1)
    def forward(self, x=None, labels=None):
        out = self.layer(x).squeeze(-1); return {"loss": ((out - labels) ** 2).mean(), "logits": out}
data = [{"x": torch.ones(2), "labels": torch.tensor(1.0)} for _ in range(64)]
args = transformers.TrainingArguments(
    output_dir="out", max_steps=MAX, per_device_train_batch_size=2, gradient_accumulation_steps=2, logging_steps=4,
    save_steps=5, report_to=[], use_cpu=True, disable_tqdm=True)
trainer = transformers.Trainer(model=Model(), args=args, train_dataset=data, callbacks=[HFCallback()])
trainer.train(resume_from_checkpoint=RESUME)
"""
LIGHTNING = """
import torch, lightning
from argosy.integrations import LightningCallback
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__(); self.layer = torch.nn.Linear(2, 1)
    def training_step(self, batch, index): return (self.layer(batch[0]) ** 2).mean()
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.01)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(64, 2)), batch_size=2)
saver = lightning.pytorch.callbacks.ModelCheckpoint(dirpath="out", every_n_train_steps=5, save_top_k=-1)
trainer = lightning.Trainer(
    max_steps=MAX, accumulate_grad_batches=2, log_every_n_steps=4, accelerator="cpu", logger=False,
    enable_progress_bar=False, callbacks=[saver, LightningCallback()])
trainer.fit(Model(), data, ckpt_path=RESUME)
"""


def told(script: str, folder: Path) -> list[dict[str, Any]]:
    """What a process told over its pipe."""
    reading, writing = os.pipe()
    try:
        environ = {**os.environ, env.PROGRESS_FD: str(writing), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=folder,
            pass_fds=[writing],
            env=environ,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()[-3000:]
    finally:
        os.close(writing)
    with os.fdopen(reading) as pipe:
        return [json.loads(line) for line in pipe]


@pytest.mark.parametrize(
    ("library", "script", "saved"),
    [
        ("transformers", HUGGING_FACE, "out/checkpoint-10"),
        ("lightning", LIGHTNING, "out/epoch=0-step=10.ckpt"),
    ],
)
def test_each_optimizer_step_is_told_once_and_a_resumed_run_goes_on(
    library: str, script: str, saved: str, tmp_path: Path
) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    first = told(script.replace("MAX", "10").replace("RESUME", "None"), tmp_path)
    assert list(dict.fromkeys(record["step"] for record in first)) == [*range(1, 11)]
    assert {record["end_step"] for record in first} == {10}
    losses = {record["step"]: record["loss"] for record in first if "loss" in record}
    assert {4, 8} <= losses.keys()
    assert all(math.isfinite(loss) for loss in losses.values())
    resumed = told(script.replace("MAX", "14").replace("RESUME", repr(saved)), tmp_path)
    assert list(dict.fromkeys(record["step"] for record in resumed)) == [11, 12, 13, 14]


def test_who_has_no_lightning_is_told_of_the_one_that_is_installed_today() -> None:
    program = "import sys; sys.modules['lightning'] = None; from argosy.integrations import LightningCallback"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stderr
    assert "No module named 'lightning.pytorch'" in said.splitlines()[-1]


def test_no_library_is_loaded_before_its_callback_is_asked_for() -> None:
    program = "import argosy.integrations, sys; print({'torch', 'transformers', 'lightning'} & sys.modules.keys())"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "set()\n"
