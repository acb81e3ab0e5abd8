"""What this pod can see of its machine: memory, room on disks, the kernel's log, InfiniBand's counters."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

KERNEL_BYTES = 256 << 10
_KERNEL_SECONDS = 1.0
_RECORD = 8192
"""The longest record of the kernel's log (Documentation/ABI/testing/dev-kmsg)."""
_SYS = Path("/sys/class/infiniband")
_PORT = ("state", "phys_state", "rate", "link_layer")
_COUNTED = ("counters", "hw_counters")


def room(paths: Iterable[Path]) -> str:
    """Size, free bytes and free files of the file systems that these lie on, as JSON lines."""
    found: dict[int, str] = {}
    for path in paths:
        try:
            told = os.statvfs(path)
            device = os.stat(path).st_dev
        except OSError:
            continue
        facts = {"path": str(path), "bytes": told.f_blocks * told.f_frsize, "free": told.f_bavail * told.f_frsize,
                 "files": told.f_files, "files_free": told.f_favail}  # fmt: skip
        found.setdefault(device, json.dumps(facts))
    return "\n".join(found.values())


def kernel_log(path: str = "/dev/kmsg") -> str:
    """The end of the kernel's log where it may be read (a restricted pod may not), else why not."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        return f"{path}: {error.strerror}\n"
    kept: deque[bytes] = deque()
    size, deadline = 0, time.monotonic() + _KERNEL_SECONDS
    try:
        while time.monotonic() < deadline:
            try:
                record = os.read(handle, _RECORD)
            except BrokenPipeError:
                continue  # overwritten while it was read
            except OSError:
                break  # nothing more
            if not record:
                break
            kept.append(_said(record))
            size += len(kept[-1])
            while size > KERNEL_BYTES:
                size -= len(kept.popleft())
    finally:
        os.close(handle)
    return b"".join(kept).decode("utf-8", "replace")


def _said(record: bytes) -> bytes:
    """``[  12.345678] text`` of ``6,123,12345678,-;text``; a plain line stays as it is."""
    head, _, text = record.partition(b";")
    parts = head.split(b",")
    if len(parts) < 3 or not parts[2].isdigit():
        return record
    return b"[%12.6f] " % (int(parts[2]) / 1e6) + text.split(b"\n", 1)[0] + b"\n"


def infiniband(root: Path = _SYS) -> dict[str, str]:
    """State and counters of each port of each RDMA device, by their path below ``root``; empty without any."""
    found = {}
    for port in sorted(root.glob("*/ports/*")):
        files = [port / name for name in _PORT]
        files += [path for folder in _COUNTED for path in sorted((port / folder).glob("*"))]
        for path in files:
            try:
                found[path.relative_to(root).as_posix()] = path.read_text().strip()
            except OSError:
                continue  # a counter that this device does not have
    return found


def changed(before: dict[str, str], after: dict[str, str]) -> dict[str, dict[str, str]]:
    """What differs: a port that went down, errors that were counted."""
    return {
        name: {"before": before.get(name, ""), "after": value}
        for name, value in after.items()
        if before.get(name, "") != value
    }
