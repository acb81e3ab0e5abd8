"""What the user's environment and a fabric cannot both mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from argosy.workflows.fabric.fabric import Fabric
from argosy.workflows.fabric.profile import Fact, Setting

_POD_INTERFACE = "eth"
"""In a pod's own network the interface is eth0; a node's has another name (ens*, enp*, bond0)."""
_INTERFACES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")


@dataclass(frozen=True)
class Contradiction:
    """A variable of the user's, and why it cannot stand beside the fabric."""

    name: str
    value: str
    rule: str
    remedy: str


def contradictions(fabric: Fabric, env: Mapping[str, str], host_network: bool) -> list[Contradiction]:
    """In the order of the profile; what merely differs is the user's to decide.

    ``host_network``: the user puts the pods into their nodes' network (the profile may do so too).
    """
    found = [
        Contradiction(setting.name, env[setting.name], _needs(fabric, setting), _remedy(fabric))
        for setting in fabric.env
        if setting.name in env and not _allowed(setting, env[setting.name])
    ]
    found += [
        Contradiction(each.name, env[each.name], _reason(fabric, each, "must not be set so"), _remedy(fabric))
        for each in fabric.refused
        if each.name in env and (not each.values or env[each.name] in each.values)
    ]
    return found + _host_interfaces(fabric, env, host_network)


def _allowed(setting: Setting, value: str) -> bool:
    if setting.must == "contain":
        return setting.value in value.split(":")
    return setting.must == "" or value == setting.value


def _needs(fabric: Fabric, setting: Setting) -> str:
    verb = "hold" if setting.must == "contain" else "be"
    return _reason(fabric, setting, f"must {verb} {setting.value!r}")


def _reason(fabric: Fabric, fact: Fact, rule: str) -> str:
    source = fabric.sources.get(fact.source)
    where = f" ({source.url})" if source is not None else ""
    return f"{rule} with fabric {fabric.name}: {fact.why.rstrip('.')}{where}"


def _remedy(fabric: Fabric) -> str:
    return f"remove it, or choose another fabric than {fabric.name}"


def _host_interfaces(fabric: Fabric, env: Mapping[str, str], host_network: bool) -> list[Contradiction]:
    if not fabric.name or not (host_network or fabric.host_network):
        return []
    # A profile that asks for the node's network knows its interfaces; one that does not means the pod's.
    ours = {setting.name: setting.value for setting in fabric.env}
    known = set(ours) if fabric.host_network else set()
    rule = (
        "names the interface of a pod's own network, and with hostNetwork the pod sees its node's interfaces; NCCL "
        "finds the one it is told or dies: Bootstrap : no socket interface found"
    )
    meant = {name: env.get(name, ours.get(name, "")) for name in _INTERFACES}
    return [
        Contradiction(name, value, rule, "name the node's interface in [env]")
        for name, value in meant.items()
        if value.lstrip("=").startswith(_POD_INTERFACE) and name not in known
    ]
