"""Noise in place of the data of others' jobs, which cannot be fetched where a suite runs."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path

SIZE = 32
PACKAGES = "ARGOSY_PUBLIC_PACKAGES"


def packages(kind: str) -> str:
    """What the image of a job of this kind has."""
    return str(Path(os.environ[PACKAGES]) / kind)


def images(folder: Path) -> None:
    """In place of Tiny ImageNet, and of bees and ants: 16 images of noise in two classes."""
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
    environment = {**os.environ, "PYTHONPATH": packages("TFJob")}
    command = [sys.executable, "-c", _DIGITS, str(folder / "data")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-600:]
    (folder / "out").mkdir()
    (folder / "out/README").write_text("the model")


def place(folder: Path) -> None:
    """Where a script writes its model; its data come with a package."""
    (folder / "models").mkdir()
    (folder / "models/README").write_text("the model")


def numbers(folder: Path) -> None:
    """In place of LightGBM's example: rows of a label, 28 columns of noise, of which two say something of it."""
    noise = random.Random(7)
    (folder / "data").mkdir()
    for name, count in (("train", 40_000), ("test", 500)):
        with (folder / f"data/binary.{name}").open("w") as rows:
            for _ in range(count):
                row = [noise.random() for _ in range(28)]
                told = [str(int(row[0] + row[1] + noise.random() > 1.5)), *(f"{each:.4f}" for each in row)]
                rows.write("\t".join(told) + "\n")
