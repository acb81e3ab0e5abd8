"""The linter of NCCL's and torch's variables: pure, without network, clock or environment.

    findings = check_environment({"NCCL_TIMEOUT": "3600"}, Facts())
    findings[0].rule, findings[0].level, findings[0].fix    # 'NCCL001', 'error', Remove('NCCL_TIMEOUT')

Errors are names that NCCL does not read although people believe it does, and values with which a job cannot start;
what only costs speed is a warning; what does nothing, or depends on the site, a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from argosy.steps.nccl.facts import Facts, Value
from argosy.steps.nccl.finding import EnvironmentFinding, Fix, Level, Remove, Rename, Set
from argosy.steps.nccl.rules import (
    algorithms,
    gone,
    interfaces,
    leftovers,
    logging,
    names,
    network,
    process,
    rdma,
    torch,
    values,
)
from argosy.steps.nccl.scene import Scene

_ERRORS = ("NCCL001", "NCCL002", "NCCL003", "NCCL017", "NCCL035", "TORCH008")
_NOTES = (
    "NCCL016",
    "NCCL019",
    "NCCL020",
    "NCCL022",
    "NCCL032",
    "NCCL033",
    "NCCL047",
    "NCCL049",
    "NCCL050",
    "NCCL052",
    "TORCH011",
)
_NUMBERS = {"NCCL": 53, "TORCH": 14}
_GONE = ("NCCL039", "NCCL046", "TORCH006", "TORCH010", "TORCH013")
"""Their names are not given again."""
RULES: dict[str, Level] = {
    rule: "error" if rule in _ERRORS else "note" if rule in _NOTES else "warning"
    for family, count in _NUMBERS.items()
    for rule in (f"{family}{number:03d}" for number in range(1, count + 1))
    if rule not in _GONE
}
"""Every rule with its usual level; a finding may say another one where the pod makes it better or worse."""

_FAMILIES = (gone, names, values, logging, interfaces, rdma, network, algorithms, leftovers, process, torch)
_OF_THE_POD = frozenset({"NCCL048", "NCCL049", "NCCL050", "NCCL051"})
"""Rules on all variables at once: they do not explain a single one."""
_BETWEEN_NODES = frozenset({"NCCL037", "NCCL053", *(f"NCCL{number:03d}" for number in range(27, 35))})
"""How the network between nodes is used, which a job of one node does not."""


def check_environment(env: Mapping[str, Value], facts: Facts) -> list[EnvironmentFinding]:
    """All findings of one container's environment, by rule and variable; ``[]`` where there is nothing to say.

    ``env``: what the process really gets, all variables (others than NCCL's are ignored); ``None`` is "set, value
    unknown".
    """
    scene = Scene.of(env, facts)
    found = [finding for family in _FAMILIES for check in family.CHECKS for finding in check(scene)]
    if facts.nodes == 1:  # NCCL050 says for all of them that there is no such network
        found = [finding for finding in found if finding.rule not in _BETWEEN_NODES]
    covered = frozenset(name for finding in found if finding.rule not in _OF_THE_POD for name in finding.variables)
    found += [finding for check in leftovers.LAST for finding in check(scene, covered)]
    return sorted(_agreed(found), key=lambda finding: (finding.rule, finding.variables))


def _agreed(found: list[EnvironmentFinding]) -> list[EnvironmentFinding]:
    """One variable has one fix: what is to be removed is not renamed as well, and not set."""
    order = (Remove, Rename, Set)
    chosen: dict[str, Fix] = {}
    for finding in sorted(found, key=lambda each: order.index(type(each.fix)) if each.fix else len(order)):
        if finding.fix:
            chosen.setdefault(finding.fix.variable, finding.fix)
    return [replace(each, fix=chosen[each.fix.variable]) if each.fix else each for each in found]
