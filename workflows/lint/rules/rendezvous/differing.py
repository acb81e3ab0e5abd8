"""Ranks of one training that are told different things."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.rendezvous.ranks import OWN_FIELDS, single
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launch import Given, Launch
from argosy.workflows.manifests.workload import Workload

_DIFFERS: Final = re.compile(
    r"\$\{?RANDOM|\$\(date|`date|\$\(uuidgen|`uuidgen|\$\(hostname|`hostname|\$\{?HOSTNAME|urandom"
)
_OF_A_RANK: Final = (
    *("rank", "index", "id", "role", "addr", "host", "ip", "port", "master", "name", "device", "log", "tb"),
)


@rule("REND058", Level.WARNING, on=Workload)
def other_arguments(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The master's script with other values of its options than the workers'."""
    if workload.family != "pytorch":
        return
    by_role = {each.role.name: each for each in bundle.launches(workload)}
    master, worker = by_role.get("Master"), by_role.get("Worker")
    if master is None or worker is None or _script(master) != _script(worker):
        return
    one, other = _options(master), _options(worker)
    for name in one.keys() & other.keys():
        if (
            one[name] == other[name]
            or any(part in name.lower() for part in _OF_A_RANK)
            or "$" in one[name] + other[name]
        ):
            continue
        yield Problem(
            worker.process.node,
            f"--{name} is {one[name]} in the Master and {other[name]} in the Worker: ranks of one training that do not "
            "take the same steps wait for each other for ever",
            "write the same arguments in both",
            inside=f"--{name}" if worker.process.in_shell else "",
        )


def _words(launch: Launch) -> tuple[str, ...]:
    return launch.process.words[1:] if launch.program == "python" else launch.process.operands


def _script(launch: Launch) -> str:
    return next((word for word in _words(launch) if word.endswith(".py")), "")


def _options(launch: Launch) -> dict[str, str]:
    """``--name value`` and ``--name=value`` by name."""
    found = {}
    words = [*_words(launch), "--"]
    for word, after in pairwise(words):
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            found[name] = value if equals else "" if after.startswith("--") else after
    return found


@rule("REND024", Level.ERROR, on=Workload)
def different_ids(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A rendezvous id that is another one in each pod."""
    for each in bundle.launches(workload):
        given = each.setting("rdzv-id") if each.torch else None
        if given is None or single(each.role) or not each.several_nodes or workload.family in ("argo", "pod"):
            continue
        match = _DIFFERS.search(given.written)
        own = match[0] if match is not None else _own_field(each, given)
        if own:
            yield Problem(
                given.node,
                f"{own} is another value in each pod: each waits alone in a rendezvous of its own",
                "write one name for the run",
                inside=given.inside,
            )


def _own_field(launch: Launch, given: Given) -> str:
    for name in re.findall(r"\$[({]?([A-Za-z_]\w*)", given.written):
        found = launch.environment.get(name)
        field = found.node.at("valueFrom.fieldRef.fieldPath").text if found is not None and found.how == "env" else ""
        if field in OWN_FIELDS:
            return f"{name} ({field})"
    return ""
