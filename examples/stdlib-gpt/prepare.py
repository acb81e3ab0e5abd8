"""Make the dataset: the source files of the running Python's standard library, as shards of raw bytes.

    python prepare.py                                # into the store of `argosy run` in this folder
    python prepare.py --out s3://bucket/stdlib-gpt   # anywhere else

Files go into train or held-out by the hash of their content, so no file is in both and the same Python gives
the same bytes on every machine. Each file is followed by one zero byte. Run it again at no cost: a shard that
is already there is not written twice.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.store import ObjectStore, open_store

SEPARATOR = b"\0"
TRAIN_SHARDS = 8
HELD_OUT_ONE_IN = 96
SKIPPED = frozenset({"test", "tests", "idlelib", "site-packages", "dist-packages", "__pycache__"})


def sources(library: Path) -> list[bytes]:
    """The different source files below ``library``, sorted by path; tests and installed packages left out."""
    seen: dict[str, bytes] = {}
    for path in sorted(library.rglob("*.py")):
        if SKIPPED.isdisjoint(path.relative_to(library).parts):
            text = path.read_bytes()
            if text and SEPARATOR not in text:
                seen.setdefault(hashlib.sha256(text).hexdigest(), text)
    return list(seen.values())


def split(files: Iterable[bytes], limit: int) -> tuple[list[bytes], list[bytes]]:
    """(train, held-out) in an order that only the contents decide, ``limit`` bytes together at most."""
    train: list[bytes] = []
    held_out: list[bytes] = []
    room = limit
    for digest, text in sorted((hashlib.sha256(text).digest(), text) for text in files):
        room -= len(text) + 1
        if room >= 0:
            # The first bytes of the digest decided the order; the last ones decide the side.
            (held_out if int.from_bytes(digest[-8:]) % HELD_OUT_ONE_IN == 0 else train).append(text)
    return train, held_out


def shards(files: list[bytes], count: int) -> list[bytes]:
    """``count`` shards of about the same size: the largest file first, always into the smallest shard."""
    piles: list[list[bytes]] = [[] for _ in range(count)]
    sizes = [0] * count
    for text in sorted(files, key=lambda text: (-len(text), text)):
        smallest = sizes.index(min(sizes))
        piles[smallest].append(text)
        sizes[smallest] += len(text) + 1
    return [b"".join(text + SEPARATOR for text in pile) for pile in piles]


def publish(store: ObjectStore, objects: dict[str, bytes]) -> int:
    """Write in order what is not there yet, byte for byte; the number of objects written.

    Raises:
        StoreError: the store refused.
    """
    written = 0
    for key, data in objects.items():
        known = store.head(key)
        if known is None or known.size != len(data) or store.get(key) != data:
            store.put(key, data)
            written += 1
    return written


def main() -> int:
    """Prepare, publish, say in one line what there is."""
    args = parse()
    volume = Path(args.state_dir, "volumes", args.claim).resolve()
    os.environ.setdefault(env.MOUNTS, json.dumps({args.mount: str(volume)}))  # where `argosy run` keeps the claim
    train, held_out = split(sources(Path(sysconfig.get_path("stdlib"))), args.limit_mb * 1_000_000)
    objects = {f"train/train-{n:05d}.bin": shard for n, shard in enumerate(shards(train, TRAIN_SHARDS))}
    objects |= {f"heldout/heldout-{n:05d}.bin": shard for n, shard in enumerate(shards(held_out, 1))}
    objects["train/_SUCCESS"] = b""  # last: a bucket's notification for it starts the run (event.json)
    try:
        written = publish(open_store(args.out), objects)
    except (InputError, StepError) as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 2
    trained, held = (sum(map(len, files)) + len(files) for files in (train, held_out))
    print(
        f"{args.out}: {len(train)} files, {trained / 1e6:.1f} MB in {TRAIN_SHARDS} shards to train on; "
        f"{len(held_out)} files, {held / 1e3:.0f} kB held out; {written} of {len(objects)} objects written"
    )
    return 0


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Shard the standard library's sources into a dataset.")
    parser.add_argument("--out", default="file:///mnt/argosy/datasets/stdlib-gpt", help="uri of the dataset")
    parser.add_argument("--limit-mb", type=int, default=12, help="most bytes to take, in millions")
    parser.add_argument("--state-dir", default=".argosy", help="state folder of `argosy run`")
    parser.add_argument("--claim", default="argosy", help="volume claim that holds file:// uris")
    parser.add_argument("--mount", default="/mnt/argosy", help="where the pods mount the claim")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
