"""The control group that this process is in, of either version: what it may have, has, and who was killed in it."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_V2 = ("memory.events", "memory.current", "memory.peak", "memory.max", "memory.stat", "cpu.stat", "cpu.max",
       "pids.current", "pids.max", "pids.events", "memory.pressure", "cpu.pressure", "io.pressure")  # fmt: skip
_V1 = ("memory.oom_control", "memory.usage_in_bytes", "memory.max_usage_in_bytes", "memory.limit_in_bytes",
       "memory.failcnt")  # fmt: skip


def facts(root: Path = _ROOT, own: Path = Path("/proc/self/cgroup")) -> str:
    """Its files that tell something, each after its name; "" where there is none."""
    found = []
    for folder, names in _folders(root, own):
        found += [f"{name}:\n{text}" for name in names if (text := _read(folder / name))]
    return "\n".join(found)


def oom_kills(root: Path = _ROOT, own: Path = Path("/proc/self/cgroup")) -> int:
    """How many processes the kernel has killed in it because there was no more memory; 0 where it does not say."""
    for folder, _ in _folders(root, own):
        for name in ("memory.events", "memory.oom_control"):
            for line in _read(folder / name).splitlines():
                key, _, value = line.partition(" ")
                if key == "oom_kill" and value.strip().isdigit():
                    return int(value)
    return 0


def _folders(root: Path, own: Path) -> list[tuple[Path, tuple[str, ...]]]:
    """In a pod its own group is the root, and the path beside it that of the node."""
    found: list[tuple[Path, tuple[str, ...]]] = []
    for line in _read(own).splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            found += [(base, _V2) for base in (root / path.lstrip("/"), root)]
        elif "memory" in controllers.split(","):
            found += [(base, _V1) for base in (root / "memory" / path.lstrip("/"), root / "memory")]
    whole = (next((each for each in found if each[1] is names and _tells(each)), None) for names in (_V2, _V1))
    return [each for each in whole if each is not None]


def _tells(candidate: tuple[Path, tuple[str, ...]]) -> bool:
    folder, names = candidate
    return (folder / names[0]).is_file()


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
