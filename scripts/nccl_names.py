"""Write ``steps/nccl/names.txt`` again: which NCCL_* names the library of each wheel holds, and NVIDIA's drawer.

    pip download --no-deps -d WHEELS nvidia-nccl-cu12==2.32.3      # and so on, one per minor version
    python scripts/nccl_names.py WHEELS --guide nccl/docs/userguide/source/env.rst

A line is ``name first last drawer``: the oldest and newest wheel that holds the name (``-``: the oldest or newest
of all wheels looked at, so nothing is known beyond it) and ``system``, ``debugging`` or ``undocumented``.
"""

from __future__ import annotations

import argparse
import itertools
import re
import zipfile
from pathlib import Path

OUTPUT = Path(__file__).parent.parent / "steps/nccl/names.txt"

# Unanchored: NCCL_PAT_ENABLE is glued to the byte of data before it, and `strings | grep ^NCCL_` loses it.
NAME = re.compile(rb"NCCL_[A-Z0-9_]+")

# What the library names so and never reads from the environment: enumerators, initialisers, log subsystems.
CONSTANTS = re.compile(
    r"NCCL_(LOG|PARAM_(FLAG|TYPE)|GIN_(TYPE_|CONNECTION_(FULL|NONE|RAIL)|MAX_TYPES|SIGNAL_TYPE)|CFT_(MULTIMEM|NONE|TEAM)"
    r"|NET_DEVICE|CTA_POLICY_|IB_RAIL_POLICY_|NET_MERGE_POLICY_|SYMK|DEV_|CRYPT|ENCRYPTION|NETDEVS_POLICY_|PROFILER_THREAD"
    r"|IPC_(COLLECTIVE|SENDRECV)|REGULAR_BUFFER|SIGNAL|SPLIT_NOCOLOR|WIN_(COLL|STRIDE)|GRAPH_DUMP_FILE_RANK|TOPO_DUMP_FILE_RANK)"
    r"|NCCL_(\w+_(INITIALIZER|REF_COUNT|REG_BUFFER)|IB_(SL|TC)_DEFAULT|NUM_RMA_INT_CTX_DEFAULT|REG_BUFFER_NUM)$"
    r"|NCCL_(ALL|ALLOC|ALLOC_HOST|BOOTSTRAP|CALL|COLL|DESTROY|ENV|GRAPH|INIT|NVLS|P2P|PROFILE|PROXY|RAS|REG|SHM|TUNING|CFT"
    r"|GROUP_CUDA_STREAM|DEVICE_UNPACK|MNNVL|REC_PAGE_SIZE|MAX_CGA_CLUSTER_SIZE|NO_CACHE_|IB_RECV_WR_ID_DUMMY)$"
)


def wheel_version(path: Path) -> tuple[int, ...]:
    """(2, 32, 3) of ``nvidia_nccl_cu12-2.32.3-….whl``."""
    return tuple(int(number) for number in path.name.split("-")[1].split(".") if number.isdigit())


def names_of(path: Path) -> set[str]:
    """Names in the library inside one wheel."""
    with zipfile.ZipFile(path) as wheel:
        library = next(name for name in wheel.namelist() if name.endswith("libnccl.so.2"))
        found = {match.decode() for match in NAME.findall(wheel.read(library))}
    return {name for name in found if not CONSTANTS.match(name)}


def drawers(guide: Path) -> dict[str, str]:
    """``system`` or ``debugging`` for each name that has a heading in NVIDIA's env.rst."""
    drawer, found = "system", {}
    lines = guide.read_text().splitlines()
    for line, under in itertools.pairwise(lines):
        if line.strip() == "Debugging" and under.startswith("==="):
            drawer = "debugging"
        if (match := re.match(r"NCCL_[A-Z0-9_]+", line)) and under.startswith("---"):
            found[match.group()] = drawer
    return found


def table(wheels: list[Path], guide: dict[str, str]) -> list[str]:
    """The lines, sorted by name."""
    held = {wheel_version(path): names_of(path) for path in wheels}
    versions = sorted(held)
    lines = []
    for name in sorted(set().union(*held.values())):
        seen = [version for version in versions if name in held[version]]
        first, last = (".".join(map(str, version)) for version in (seen[0], seen[-1]))
        first, last = "-" if seen[0] == versions[0] else first, "-" if seen[-1] == versions[-1] else last
        lines.append(f"{name} {first} {last} {guide.get(name, 'undocumented')}")
    return [f"# libnccl.so.2 of {', '.join('.'.join(map(str, version)) for version in versions)}", *lines]


def main() -> None:
    """Read the wheels, write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path, help="a folder of nvidia-nccl-cu* wheels")
    parser.add_argument("--guide", type=Path, required=True, help="docs/userguide/source/env.rst of NVIDIA/nccl")
    given = parser.parse_args()
    lines = table(sorted(given.wheels.glob("nvidia_nccl_cu*.whl")), drawers(given.guide))
    OUTPUT.write_text("\n".join(lines) + "\n")
    print(f"{OUTPUT.name}: {len(lines) - 1} names")


if __name__ == "__main__":
    main()
