"""Jobs that others published, imported and run on this machine: a rank is killed on the way.

``ARGOSY_PUBLIC`` is a folder with a checkout of each repository by its name (nothing of theirs is kept here), and
``ARGOSY_PUBLIC_PACKAGES`` one with what their images have, below the kind's name: torchvision; xgboost 1.7 with
scikit-learn, pandas, oss2; tensorflow-cpu with tf_keras, tensorflow-datasets, importlib_resources, tensorboard. What is
changed in the ``run.toml`` that import writes stands below, and what in a script.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from tests.prove.record import Record

ARGOSY = [sys.executable, "-m", "argosy.workflows.cli.main"]
COLUMNS = ["kind", "source", "licence", "changed in run.toml", "attempts", "ended by", "resumed from step",
           "trained to step", "held", "error"]  # fmt: skip
SIZE = 32
NOTE = """\
On one machine, by `argosy run`; their images cannot be pulled there. Not run: an MPIJob and a RayJob.

The XGBoostJob held once and failed twice: XGBoost 1.7's tracker numbers the ranks itself, and its rank 0, which saves,
was another pod than the Master, whose files are committed. Such a run ends with `finished_without_checkpoint` and names
the node that holds the model."""


def images(folder: Path) -> None:
    """In place of Tiny ImageNet: 16 images of noise in two classes."""
    noise = random.Random(7)
    for part, count in (("train", 6), ("val", 2)):
        for name in [f"{part}/{label}/{number}.png" for label in "ab" for number in range(count)]:
            rows = b"".join(b"\0" + noise.randbytes(3 * SIZE) for _ in range(SIZE))
            header = struct.pack(">IIBBBBB", SIZE, SIZE, 8, 2, 0, 0, 0)
            chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
            path = folder / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            written = (struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in chunks)
            path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(written))


_DIGITS = """\
import sys
import numpy, tensorflow as tf, tensorflow_datasets as tfds
dice = numpy.random.default_rng(7)
def noise(count):
    for number in range(count):
        yield {"image": dice.integers(0, 255, (28, 28, 1), dtype=numpy.uint8), "label": number % 10}
told = {"image": tf.TensorSpec((28, 28, 1), tf.uint8), "label": tf.TensorSpec((), tf.int64)}
tfds.dataset_builders.store_as_tfds_dataset(
    name="mnist", version="3.0.1", data_dir=sys.argv[1],
    features=tfds.features.FeaturesDict({
        "image": tfds.features.Image(shape=(28, 28, 1)), "label": tfds.features.ClassLabel(num_classes=10),
    }),
    split_datasets={
        part: tf.data.Dataset.from_generator(lambda count=count: noise(count), output_signature=told)
        for part, count in (("train", 256), ("test", 64))
    },
)
"""


def digits(folder: Path) -> None:
    """In place of MNIST: 320 images of noise, as tensorflow-datasets keeps what it has downloaded."""
    environment = {**os.environ, "PYTHONPATH": _packages("TFJob")}
    command = [sys.executable, "-c", _DIGITS, str(folder / "data")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:]
    (folder / "out").mkdir()
    (folder / "out/README").write_text("the model")


def place(folder: Path) -> None:
    """Where its script writes the model; its data come with a package."""
    (folder / "models").mkdir()
    (folder / "models/README").write_text("the model")


@dataclass(frozen=True)
class Job:
    """``args``: the arguments, where they are not those of the manifest; ``checkpoint``: the folder and what of it is
    kept; ``resumes``: whether its script goes on; ``options`` of ``argosy run``.
    """

    kind: str
    source: str
    folder: str
    manifest: str
    licence: str
    script: str
    args: tuple[str, ...]
    told: str
    kill: str
    checkpoint: tuple[str, ...]
    resumes: bool
    renamed: tuple[str, str, str] = ("", "", "")
    """A file of theirs, and what this Python no longer knows -> what it is called now."""
    data: Callable[[Path], None] = place
    env: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()


JOBS = (
    Job(
        "PyTorchJob", "kubeflow/training-operator release-1.9", "examples/pytorch/elastic/imagenet",
        "imagenet.yaml", "Apache-2.0, the script BSD-3", "imagenet.py",
        ("--arch=shufflenet_v2_x0_5", "--epochs=6", "--batch-size=3", "--workers=0", "{folder}/data",
         "--checkpoint-file=out/checkpoint.pth.tar"),
        "a smaller network, 6 epochs, 16 images of noise, its checkpoint below the folder", "kill:rank=1@step=3",
        ("out", "checkpoint.pth.tar"), resumes=True, data=images,
    ),
    Job(
        "XGBoostJob", "kubeflow/training-operator release-1.9", "examples/xgboost/xgboost-dist",
        "../xgboostjob.yaml", "Apache-2.0", "main.py",
        ("--job_type=Train", "--n_estimators=3000", "--model_path=models/model", "--model_storage_type=local"),
        "3,000 trees, its model below the folder (--model_path of the Master for all); in its tracker "
        "Thread.isAlive is is_alive since Python 3.9", "kill:rank=1@seconds=20",
        ("models", "model"), resumes=False, renamed=("tracker.py", "isAlive", "is_alive"),
    ),
    Job(
        "TFJob", "kubeflow/training-operator release-1.9", "examples/tensorflow/distribution_strategy",
        "multi_worker_tfjob.yaml", "Apache-2.0", "multi_worker_strategy-with-keras.py",
        ("--saved_model_dir=out/saved_model", "--checkpoint_dir=out"),
        "320 images of noise, its checkpoints below the folder, no GPU (-j 2x1), tf_keras as TensorFlow 2.11 had it",
        "kill:rank=1@step=150", ("out", "ckpt_*", "checkpoint"), resumes=False, data=digits,
        env=(("TFDS_DATA_DIR", "{folder}/data"), ("TF_USE_LEGACY_KERAS", "1")), options=("-j", "2x1"),
    ),
)  # fmt: skip
COUNT = len(JOBS)


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The jobs that are not recorded yet; 0 when all that were done held."""
    record = Record("public-jobs", seed)
    record.go_on([JOBS[number] for number in record.left(min(count, COUNT))], _case, minutes)
    return record.told("Published jobs, imported, killed and gone on", COLUMNS, count=0, note=NOTE)


def _case(job: Job) -> dict[str, Any]:
    folder = Record("public-jobs", 0).folder / "public-jobs" / job.kind
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(Path(os.environ["ARGOSY_PUBLIC"]) / job.folder, folder)
    shutil.copy(Path(os.environ["ARGOSY_PUBLIC"]) / job.folder / job.manifest, folder / "job.yaml")
    job.data(folder)
    name, old, new = job.renamed
    if name:
        (folder / name).write_text((folder / name).read_text().replace(old, new))
    told = {"kind": job.kind, "source": job.source, "licence": job.licence, "changed in run.toml": job.told}
    try:
        return {**told, **_run(job, folder)}
    except (AssertionError, KeyError) as error:
        return {**told, "held": False, "error": " ".join(repr(error).split())[-300:]}


def _run(job: Job, folder: Path) -> dict[str, Any]:
    _argosy(folder, "import", "job.yaml", "--script", job.script, "-o", "run.toml")
    run = tomllib.loads((folder / "run.toml").read_text())
    assert run["gang"]["runtime"] == job.kind.lower()
    run.pop("working_dir", None)
    run |= {"script": job.script, "code": ".", "args": [each.format(folder=folder) for each in job.args]}
    theirs = {name: text.format(folder=folder) for name, text in job.env}
    run["env"] = run.get("env", {}) | {"PYTHONPATH": _packages(job.kind)} | theirs
    run["checkpoint"] = {"mode": "opaque", "path": job.checkpoint[0], "include": [*job.checkpoint[1:]]}
    (folder / "run.toml").write_text(tomlkit.dumps(run))
    _argosy(folder, "run", "run.toml", *job.options, "--inject", job.kill)
    status = json.loads(_argosy(folder, "status", "--json"))
    attempts = status["attempts"]
    first, last = attempts[0], attempts[-1]
    assert (status["phase"], len(attempts)) == ("Succeeded", 2), status
    assert int(last["restored_step"]) > 0 or not job.resumes, attempts
    return {
        "attempts": len(attempts),
        "ended by": f"signal {first['signal']} of rank {first['rank']}",
        "resumed from step": last["restored_step"] if job.resumes else "none: its script reads no checkpoint",
        "trained to step": status["last_step"],
        "held": True,
    }


def _packages(kind: str) -> str:
    return str(Path(os.environ["ARGOSY_PUBLIC_PACKAGES"]) / kind)


def _argosy(folder: Path, *words: str) -> str:
    done = subprocess.run([*ARGOSY, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:] + done.stdout[-600:]
    return done.stdout
