"""Gather in ``.gpu`` what a GPU machine without a network lacks for ``make gpu``: wheels, and the commit's name.

    python scripts/gpu_wheels.py [--python 3.12] [--there NAME ...]

What argosy's ``submit`` extra needs, in the versions that are installed here, but for what the machine has already
(``--there`` adds names to the list). Carry the folder ``.gpu`` with the working tree. Only the part ``example`` needs
the wheels: all others run with torch, numpy and PyYAML alone.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".gpu"
LIMIT_BYTES = 60 << 20
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in (39, 35, 34, 31, 28, 27, 24, 17)] + [
    "manylinux2014_x86_64", "manylinux1_x86_64",
]  # fmt: skip
# What an image with torch, JAX and the usual companions brings.
THERE = {
    "aiohappyeyeballs", "aiohttp", "aiosignal", "annotated-doc", "anyio", "attrs", "certifi", "click", "colorama",
    "filelock", "frozenlist", "fsspec", "h11", "httpcore", "httpx", "hypothesis", "idna", "iniconfig", "jinja2",
    "markdown-it-py", "markupsafe", "mdurl", "multidict", "numpy", "packaging", "pathspec", "pluggy", "propcache",
    "pygments", "pytest", "python-dateutil", "pyyaml", "requests", "rich", "safetensors", "setuptools", "shellingham",
    "six", "sortedcontainers", "torch", "tqdm", "typing-extensions", "urllib3", "yarl",
}  # fmt: skip


def canonical(name: str) -> str:
    """As indexes compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(there: set[str]) -> dict[str, str]:
    """Name -> version of all that ``argosy[submit]`` needs and the machine lacks, as installed here."""
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    todo = [("argosy", "submit")]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for line in metadata.requires(name) or []:
            requirement = Requirement(line)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
                continue
            child = canonical(requirement.name)
            if child != "argosy" and child not in there:
                found[child] = metadata.version(child)
            if child not in there:
                todo += [(child, each) for each in ("", *requirement.extras)]
    return found


def main() -> int:
    """Download; 1 when it is more than can be carried."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="3.12", help="version of the machine's Python (default 3.12)")
    parser.add_argument("--there", nargs="*", default=[], help="further packages that the machine has")
    args = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    head = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    (FOLDER / "commit").write_text(subprocess.run(head, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    wheels = FOLDER / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    names = [f"{name}=={version}" for name, version in sorted(needed(THERE | set(args.there)).items())]
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--implementation=cp",
         "--python-version", args.python, *platforms, "-d", str(wheels), *names],
        check=True,
    )  # fmt: skip
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    print(f"{len(names)} wheels, {size / 2**20:.0f} MiB in {FOLDER} (at most {LIMIT_BYTES >> 20}): {', '.join(names)}")
    return 0 if size <= LIMIT_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
