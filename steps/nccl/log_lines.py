"""The lines of NCCL's log that say how ranks are connected, from NCCL 2.4 to 2.32, as regular expressions.

Formats: ``src/init.cc``, ``src/transport/*.cc``, ``src/plugin/net.cc`` and ``src/debug.cc`` of NVIDIA/nccl, and what
users quote in its issues (#229, #278 ``Ring 00 :``; #527 ``Channel 00 :``; #952, #1189 ``Channel 00/0 :``; #1412 a
process with several GPUs; #1988 ``/IB/SHARP``). They are searched for, not matched at the start: launchers put ranks,
pods and times before a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PREFIX: Final = re.compile(
    r"(?P<host>[^\s:]*):(?P<pid>\d+):\d+ \[-?\d+\] (?:\S+:\d+ (?:\([^)]*\) )?)?"
    r"NCCL (?P<level>INFO|WARN|ATTN|TRACE|DIAG) ?"
)
VERSION: Final = re.compile(r"NCCL version (?P<version>\d+\.\d+\.\d+)")
NETWORK: Final = re.compile(r"Using network (?P<net>.+?)\s*$")
CHANNEL: Final = re.compile(
    r"(?:Channel|Ring) (?P<channel>\d+)(?:/\d+)? : (?P<from>\d+)(?:\[\w+\])? -> (?P<to>\d+)(?:\[\w+\])?"
    r"(?: \[(?P<direction>send|receive)\])? via (?P<via>.+?)\s*$"
)
COLLNET: Final = re.compile(r"CollNet \d+/\d+ : (?P<rank>\d+) \[(?:send|receive)\] via (?P<via>COLLNET/.+?)\s*$")
NET: Final = re.compile(
    r"(?:NET|COLLNET)/(?P<net>.+?)/(?P<device>\d+)(?:\(\d+\))?(?P<gdr>/GDRDMA(?:\(PCI\))?)?(?:/Shared)?$"
)
DEVICES: Final = re.compile(r"NET/(?P<net>\S+) ?: Using (?P<devices>\[\d+\].+?)(?: \[RO\])?(?:; OOB .*)?$")
DEVICE: Final = re.compile(r"\[\d+\](?P<name>[^\s/<]+)")
PROVIDER: Final = re.compile(r"(?i)NET/OFI Selected provider is [^\s,]+.*\(found (?P<count>\d+) nics\)")
PLUGIN: Final = re.compile(
    r"NET/Plugin ?: Loaded net plugin (?P<loaded>.+?)(?: \(v\d+\))?\s*$|P2P plugin (?P<p2p>\S+)"
    r"|Initialized NET plugin (?P<initialized>.+?)\s*$"
)
START: Final = re.compile(
    r"comm 0x[0-9a-f]+ rank (?P<rank>\d+) nranks (?P<ranks>\d+) cudaDev \d+.* - Init (?P<state>\w+)"
)
SHAPE: Final = re.compile(
    r"comm 0x[0-9a-f]+ rank \d+ nRanks (?P<ranks>\d+) nNodes (?P<nodes>\d+) localRanks (?P<local>\d+)"
)
COUNTS: Final = re.compile(r"(?P<coll>\d+) coll channels, .*?(?:(?P<nvls>\d+) nvls channels, )?\d+ p2p channels")
NVLS_TREE: Final = re.compile(r"Connected NVLS tree")
MULTICAST: Final = re.compile(r"NVLS multicast support is (?P<no>not )?available on dev")
VARIABLE: Final = re.compile(
    r"\b(?P<name>(?:NCCL|OFI_NCCL|FI|UCX)_[A-Z0-9_]+) set (?:by environment )?to (?P<value>.*?)\s*$"
)


LONGEST: Final = 1024
"""Characters of a message: the buffer of NCCL's ``ncclDebugLog``."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of NCCL's, without what launchers put before it."""

    host: str
    pid: int
    level: str
    """INFO, WARN and so on; empty for the version line, which has no prefix."""
    message: str


def read_line(text: str) -> Line | None:
    """The line if it is NCCL's, else None."""
    if "NCCL" not in text:
        return None
    if found := PREFIX.search(text):
        return Line(found["host"], int(found["pid"]), found["level"], text[found.end() :][:LONGEST].rstrip())
    if found := VERSION.search(text):
        return Line("", 0, "", found[0])
    return None
