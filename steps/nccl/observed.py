"""What NCCL's log says of the transport: a consumer of lines that never holds more than a few thousand facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from argosy.steps.nccl import log_lines
from argosy.steps.nccl.log_lines import Line, read_line
from argosy.steps.nccl.symptoms import symptom_of

MOST_FACTS: Final = 4096
"""Of each kind (ranks, pairs, devices); a log of any length is read in bounded memory."""
MOST_WARNINGS: Final = 20
LONGEST: Final = 500
"""Characters of a line that are kept."""


@dataclass(slots=True)
class Channels:
    """Connections of one kind: ``NET/IB``, ``P2P/CUMEM``, ``SHM``, ``COLLNET/SHARP``."""

    count: int = 0
    gdr: int = 0
    """Those that say ``/GDRDMA``."""
    devices: set[int] = field(default_factory=set)
    received: int = 0
    received_gdr: int = 0
    without_gdr: str = ""
    """The first line of one that does not say it."""

    @property
    def compared(self) -> tuple[int, int]:
        """(connections, those with GPUDirect RDMA) by which that is judged: the receiving ends where any are known.

        Sending GPUs without NVLink are read by the host on purpose (``NCCL_NET_GDR_READ`` = 0 is their default).
        """
        return (self.received, self.received_gdr) if self.received else (self.count, self.gdr)


@dataclass(slots=True)
class ObservedTransport:
    """Facts of the log so far. Counts are of lines: a connection is said by its sender and by its receiver."""

    version: str = ""
    plugin: str = ""
    networks: list[str] = field(default_factory=list)
    """As after ``Using network``, in order of appearance."""
    devices: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Network -> names of the devices that it found."""
    provider_nics: int = 0
    """Of libfabric, for aws-ofi-nccl."""
    channels: dict[str, Channels] = field(default_factory=dict)
    hosts: dict[str, set[int]] = field(default_factory=dict)
    """Host -> process ids that spoke."""
    pairs: set[tuple[str, str]] = field(default_factory=set)
    """(sender, receiver) of network connections: a host, or ``rank N`` whose host this log does not say."""
    communicators: int = 0
    """``Init COMPLETE`` lines."""
    nodes: int = 0
    """Of the widest communicator; 0: not said (before 2.19)."""
    local_ranks: int = 0
    coll_channels: int = 0
    nvls_channels: int | None = None
    multicast: bool | None = None
    """Whether NVLink SHARP is available on every GPU that said so."""
    warnings: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    """What NCCL says it has read: of a variable that is missing here it took no notice, or none yet."""
    symptoms: dict[str, str] = field(default_factory=dict)
    """Name of a symptom -> the first line that shows it."""
    lines: int = 0
    """NCCL's own lines."""

    @property
    def has_begun(self) -> bool:
        """Whether NCCL said anything."""
        return self.lines > 0

    def of_kind(self, kind: str) -> dict[str, Channels]:
        """The channels whose kind begins so: ``NET/``, ``SHM``."""
        return {name: channels for name, channels in self.channels.items() if name.startswith(kind)}


class Observer:
    """Feed it with lines; :attr:`seen` is what they say."""

    def __init__(self) -> None:
        self.seen = ObservedTransport()
        self._host_of: dict[int, str] = {}

    def feed(self, texts: Iterable[str]) -> None:
        """Take lines of any program; those that are not NCCL's are passed over."""
        for text in texts:
            line = read_line(text)
            if line is not None:
                self._take(line)

    def _take(self, line: Line) -> None:
        seen, message = self.seen, line.message
        seen.lines += 1
        if not line.level:
            seen.version = seen.version or message.removeprefix("NCCL version ")
            return
        pids = seen.hosts.setdefault(line.host, set()) if len(seen.hosts) < MOST_FACTS else set()
        if len(pids) < MOST_FACTS:
            pids.add(line.pid)
        if " via " in message and self._connection(line):
            return
        if line.level == "WARN":
            self._warning(message)
        symptom = symptom_of(message)
        if symptom is not None:
            seen.symptoms.setdefault(symptom.name, message[:LONGEST])
        if not (self._variable(message) or self._network(message) or self._communicator(line)):
            self._nvls(message)

    def _connection(self, line: Line) -> bool:
        if found := log_lines.CHANNEL.search(line.message):
            if found["via"].startswith("NET/"):
                self._pair(line.host, int(found["from"]), int(found["to"]), found["direction"])
            self._channel(line.message, found["via"], received=found["direction"] == "receive")
        elif found := log_lines.COLLNET.search(line.message):
            self._channel(line.message, found["via"], received=False)
        else:
            return False
        return True

    def _channel(self, message: str, via: str, *, received: bool) -> None:
        net = log_lines.NET.match(via)
        kind = f"{via.split('/', 1)[0]}/{net['net']}" if net else _local_kind(via)
        if kind not in self.seen.channels and len(self.seen.channels) >= MOST_FACTS:
            return
        channels = self.seen.channels.setdefault(kind, Channels())
        channels.count += 1
        channels.received += received
        if net is None:
            return
        if len(channels.devices) < MOST_FACTS:
            channels.devices.add(int(net["device"]))
        if net["gdr"]:
            channels.gdr += 1
            channels.received_gdr += received
        else:
            channels.without_gdr = channels.without_gdr or message[:LONGEST]

    def _pair(self, host: str, sender: int, receiver: int, direction: str | None) -> None:
        here, there = (sender, receiver) if direction != "receive" else (receiver, sender)
        self._learn(here, host)
        other = self._host_of.get(there, f"rank {there}")
        if len(self.seen.pairs) < MOST_FACTS:
            self.seen.pairs.add((host, other) if direction != "receive" else (other, host))

    def _learn(self, rank: int, host: str) -> None:
        # Smaller communicators count their ranks anew; once a number means two hosts it names none.
        if self._host_of.get(rank, host) != host:
            self._host_of[rank] = f"rank {rank}"
        elif len(self._host_of) < MOST_FACTS:
            self._host_of[rank] = host

    def _warning(self, message: str) -> None:
        text = message[:LONGEST]
        if len(self.seen.warnings) < MOST_WARNINGS and text not in self.seen.warnings:
            self.seen.warnings.append(text)

    def _variable(self, message: str) -> bool:
        found = log_lines.VARIABLE.search(message)
        if found is None:
            return False
        if len(self.seen.environment) < MOST_FACTS:
            value = found["value"][:LONGEST]
            number = value.removesuffix(".")  # numbers are printed with a full stop, text without
            self.seen.environment[found["name"]] = number if number.lstrip("-").isdigit() else value
        return True

    def _network(self, message: str) -> bool:
        seen = self.seen
        if found := log_lines.NETWORK.search(message):
            if found["net"] not in seen.networks and len(seen.networks) < MOST_FACTS:
                seen.networks.append(found["net"])
        elif found := log_lines.DEVICES.search(message):
            names = tuple(log_lines.DEVICE.findall(found["devices"]))
            if len(names) > len(seen.devices.get(found["net"], ())) and len(seen.devices) < MOST_FACTS:
                seen.devices[found["net"]] = names[:MOST_FACTS]
        elif found := log_lines.PROVIDER.search(message):
            seen.provider_nics = int(found["count"])
        elif found := log_lines.PLUGIN.search(message):
            seen.plugin = seen.plugin or found["loaded"] or found["p2p"] or found["initialized"]
        else:
            return False
        return True

    def _communicator(self, line: Line) -> bool:
        seen = self.seen
        if found := log_lines.START.search(line.message):
            self._learn(int(found["rank"]), line.host)
            seen.communicators += found["state"] == "COMPLETE"
        elif found := log_lines.SHAPE.search(line.message):
            seen.nodes = max(seen.nodes, int(found["nodes"]))
            seen.local_ranks = max(seen.local_ranks, int(found["local"]))
        elif found := log_lines.VERSION.search(line.message):
            seen.version = seen.version or found["version"]
        else:
            return False
        return True

    def _nvls(self, message: str) -> None:
        seen = self.seen
        if found := log_lines.COUNTS.search(message):
            seen.coll_channels = max(seen.coll_channels, int(found["coll"]))
            if found["nvls"] is not None:
                seen.nvls_channels = max(seen.nvls_channels or 0, int(found["nvls"]))
        elif found := log_lines.MULTICAST.search(message):
            seen.multicast = seen.multicast is not False and not found["no"]
        elif log_lines.NVLS_TREE.search(message):
            seen.nvls_channels = max(seen.nvls_channels or 0, 1)


def _local_kind(via: str) -> str:
    """``P2P/direct pointer/read`` -> ``P2P/direct pointer``; ``SHM/direct/direct`` -> ``SHM``."""
    parts = via.split("/")
    return "/".join(parts[:2]) if parts[0] == "P2P" else parts[0]


def tally(kinds: dict[str, Channels]) -> str:
    """``NET/IB (12), SHM (4)``, the most frequent first."""
    counted = Counter({name: channels.count for name, channels in kinds.items()})
    return ", ".join(f"{name} ({count})" for name, count in counted.most_common())
