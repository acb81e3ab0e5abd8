"""The transport verdict: what a fabric profile expects against what NCCL's log says, in one sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from argosy.steps.contract.transport import MNNVL, ExpectedTransport
from argosy.steps.nccl.observed import ObservedTransport, tally
from argosy.steps.nccl.symptom import Fault
from argosy.steps.nccl.symptoms import SYMPTOMS

State = Literal["ok", "wrong", "unknown"]
NVLS_RANKS: Final = 4
"""NCCL does not use NVLink SHARP for fewer GPUs of a node."""
_SAME: Final = (
    (re.compile(r"IB(ext.*)?", re.IGNORECASE), "IB"),  # HPC-X calls its InfiniBand plugin IBext, IBext_v8
    (re.compile(r"(AWS )?Libfabric", re.IGNORECASE), "Libfabric"),  # the name before aws-ofi-nccl 1.12
    (re.compile(r"GPUDirectTCPX(_v\d+)?", re.IGNORECASE), "GPUDirectTCPX"),  # the version of NCCL's plugin interface
)
_OWN: Final = ("IB", "Socket")
"""NCCL's own networks; every other one is a plugin's."""


@dataclass(frozen=True, slots=True)
class TransportVerdict:
    """``because`` is the line of the log that explains a wrong transport; empty: none does."""

    state: State
    expected: str
    """``NET/IB with GDR``; empty: nothing between nodes."""
    got: str
    because: str = ""
    remedy: str = ""

    @property
    def sentence(self) -> str:
        """``expected NET/IB with GDR, got NET/Socket because "NET/IB : No device found."``."""
        if self.state == "ok":
            return self.got
        if self.state == "unknown":
            return f"expected {self.expected}, not known: {self.got}" if self.expected else self.got
        why = f'because "{self.because}"' if self.because else "and no line of NCCL's log says why"
        return f"expected {self.expected}, got {self.got} {why}"


def judge_transport(expected: ExpectedTransport, seen: ObservedTransport, nnodes: int) -> TransportVerdict:
    """Compare; ``nnodes`` is the number of nodes of the gang.

    Wrong needs evidence, and so does ok: NCCL opens its channels with the first collective (2.22 and later), so a
    log without any says nothing yet.
    """
    wanted = describe(expected, nnodes)
    if not seen.has_begun:
        return TransportVerdict("unknown", wanted, "NCCL has written nothing (ranks that use gloo never do)")
    between = expected.network if nnodes > 1 else ""
    for check in (_network, _gdr, _devices) if between else ():
        if (found := check(expected, seen, wanted)) is not None:
            return found
    for check_node in (_within, _nvls) if expected.nvls else ():
        if (found := check_node(seen)) is not None:
            return found
    if between:
        return TransportVerdict("ok", wanted, summary(seen))
    if not seen.communicators and not seen.channels:
        return TransportVerdict("unknown", wanted, "no communicator is complete")
    alone = "one node, so no network is used" if nnodes == 1 else "no network is expected"
    return TransportVerdict("ok", wanted, "; ".join(filter(None, (alone, summary(seen)))))


def describe(expected: ExpectedTransport, nnodes: int) -> str:
    """``NET/IB with GDR and NVLS``."""
    parts = []
    if expected.network and nnodes > 1:
        parts.append(_called(expected.network) + (" with GDR" if expected.gdr else ""))
    if expected.nvls:
        parts.append("NVLS")
    return " and ".join(parts)


def summary(seen: ObservedTransport) -> str:
    """What is in use: ``NET/IB with GDR on 8 devices, NVLS; NCCL 2.30.7``."""
    parts = []
    for name, channels in sorted(seen.of_kind("NET/").items()):
        all_of_them, with_gdr = channels.compared
        gdr = " with GDR" if with_gdr == all_of_them else " partly with GDR" if with_gdr else ""
        count = len(channels.devices)
        parts.append(f"{name}{gdr} on {count} device{'' if count == 1 else 's'}")
    parts += sorted(name for name in seen.channels if name.startswith(("P2P/", "SHM", "COLLNET/")))
    if seen.nvls_channels:
        parts.append("NVLS")
    return "; ".join(filter(None, (", ".join(parts), f"NCCL {seen.version}" if seen.version else "")))


def same_network(expected: str, got: str) -> bool:
    """Whether NCCL means the same network by both names."""
    return _family(expected) == _family(got)


def _family(name: str) -> str:
    return next((family for regex, family in _SAME if regex.fullmatch(name)), name).lower()


def _called(network: str) -> str:
    return "P2P/MNNVL" if network == MNNVL else f"NET/{network}"


def _network(expected: ExpectedTransport, seen: ObservedTransport, wanted: str) -> TransportVerdict | None:
    used = {name.removeprefix("NET/"): channels for name, channels in seen.of_kind("NET/").items()}
    if expected.network == MNNVL:
        if "P2P/MNNVL" in seen.channels:
            return None  # a gang of several NVLink domains has a network between them as well
        if used:
            return _wrong(seen, wanted, tally(seen.of_kind("NET/")), Fault.NETWORK)
        return TransportVerdict("unknown", wanted, "no channel between nodes is open")
    if "P2P/MNNVL" in seen.channels and not used:
        return None  # nodes that NVLink joins: better than what was expected, whatever network NCCL chose besides
    others = [name for name in used or seen.networks if not same_network(expected.network, name)]
    if others:
        fault = Fault.NETWORK if expected.network in _OWN else Fault.PLUGIN
        return _wrong(seen, wanted, " and ".join(f"NET/{name}" for name in sorted(others)), fault)
    if used or seen.of_kind("COLLNET/"):
        return None
    chosen = f"NCCL chose {seen.networks[0]}; " if seen.networks else ""
    return TransportVerdict("unknown", wanted, f"{chosen}no channel between nodes is open")


def _gdr(expected: ExpectedTransport, seen: ObservedTransport, wanted: str) -> TransportVerdict | None:
    nets = seen.of_kind("NET/")
    without = {name: channels for name, channels in nets.items() if channels.compared[0] != channels.compared[1]}
    if not expected.gdr or not without:
        return None
    name, channels = max(without.items(), key=lambda item: item[1].count)
    total, gdr = channels.compared
    share = f" ({total - gdr} of {total} channels)" if gdr else ""
    return _wrong(seen, wanted, f"{name} without GDR{share}", Fault.GDR, channels.without_gdr)


def _devices(expected: ExpectedTransport, seen: ObservedTransport, wanted: str) -> TransportVerdict | None:
    """Found, not used: which of them carry traffic depends on the number of ranks."""
    found = [len(names) for net, names in seen.devices.items() if same_network(expected.network, net)]
    if same_network(expected.network, "Libfabric"):
        found.append(seen.provider_nics)
    if not expected.nics or not any(found) or max(found) >= expected.nics:
        return None
    return _wrong(seen, f"{wanted} on {expected.nics} devices", f"{max(found)}", Fault.DEVICES)


def _within(seen: ObservedTransport) -> TransportVerdict | None:
    """A node with NVLink SHARP has NVLink between all its GPUs: none of them needs the host's memory."""
    if "SHM" not in seen.channels:
        return None
    return _wrong(seen, "P2P within a node", "SHM", Fault.LOCAL)


def _nvls(seen: ObservedTransport) -> TransportVerdict | None:
    ranks = seen.local_ranks or max(map(len, seen.hosts.values()), default=0)  # before 2.19: a process is a rank
    if 0 < ranks < NVLS_RANKS or seen.nvls_channels:
        return None
    if seen.multicast is False or seen.nvls_channels == 0 or "nvls-off" in seen.symptoms:
        return _wrong(seen, "NVLS", "none", Fault.NVLS)
    return TransportVerdict("unknown", "NVLS", "NCCL has not said whether it uses NVLink SHARP")


def _wrong(seen: ObservedTransport, wanted: str, got: str, fault: Fault, otherwise: str = "") -> TransportVerdict:
    """With the line that explains it: the first row of the table that the log shows."""
    faults = (fault, Fault.NETWORK) if fault == Fault.PLUGIN else (fault,)
    for reason in faults:
        for symptom in SYMPTOMS:
            if symptom.fault == reason and symptom.name in seen.symptoms:
                return TransportVerdict("wrong", wanted, got, seen.symptoms[symptom.name], symptom.remedy)
    return TransportVerdict("wrong", wanted, got, otherwise)
