"""Write a small dataset of tar archives, as WebDataset lays them out, where `argosy run` keeps its volume."""

import argparse
import io
import random
import struct
import tarfile
from pathlib import Path

FEATURES, CLASSES = 32, 4


def sample(draw, centres):
    """A point near its class's centre: its 32 float32 and the class."""
    label = draw.randrange(CLASSES)
    point = [value + draw.gauss(0, 1) for value in centres[label]]
    return {"f32": struct.pack(f"<{FEATURES}f", *point), "cls": str(label).encode()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=".argosy/volumes/argosy/datasets/streaming")
    parser.add_argument("--archives", type=int, default=8)
    parser.add_argument("--samples", type=int, default=250, help="in each archive")
    args = parser.parse_args()
    draw = random.Random(0)
    centres = [[draw.gauss(0, 1) for _ in range(FEATURES)] for _ in range(CLASSES)]
    folder = Path(args.out)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(args.archives):
        with tarfile.open(folder / f"{number:05}.tar", "w") as archive:
            for index in range(args.samples):
                for extension, data in sample(draw, centres).items():
                    member = tarfile.TarInfo(f"{number:05}/{index:05}.{extension}")
                    member.size = len(data)
                    archive.addfile(member, io.BytesIO(data))
    print(f"{folder}: {args.archives} archives of {args.samples} samples")


if __name__ == "__main__":
    main()
