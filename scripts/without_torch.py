"""Print a hashed requirements file without torch and what only torch brings (``# via torch``)."""

from __future__ import annotations

import re
import sys
from pathlib import Path


def blocks(text: str) -> list[str]:
    """One block per requirement: its line, its hashes, its ``# via`` comment."""
    return re.split(r"\n(?=[a-z0-9])", text)


def brought_by(block: str) -> set[str]:
    """Names behind ``# via``."""
    comment = block.split("# via", 1)
    return set(re.findall(r"[a-z0-9][a-z0-9._-]*", comment[1])) if len(comment) == 2 else set()


def main() -> None:
    """Filter the file named by the only argument."""
    kept = blocks(Path(sys.argv[1]).read_text())
    dropped = {"torch"}
    while True:
        gone = [b for b in kept if b.split("==")[0] in dropped or (brought_by(b) and brought_by(b) <= dropped)]
        if not gone:
            break
        dropped |= {block.split("==")[0] for block in gone}
        kept = [block for block in kept if block not in gone]
    print("\n".join(kept))


if __name__ == "__main__":
    main()
