"""The linter of NCCL's and torch's variables: pure, without network, clock or environment.

    findings = check_environment({"NCCL_TIMEOUT": "3600"}, Facts())
    findings[0].rule, findings[0].level, findings[0].fix    # 'NCCL001', 'error', Remove('NCCL_TIMEOUT')

Errors are names that NCCL does not read although people believe it does, and values with which a job cannot start;
what only costs speed is a warning; what does nothing, or depends on the site, a note.
"""

from __future__ import annotations

from collections.abc import Mapping

from argosy.steps.nccl.facts import Facts, Value
from argosy.steps.nccl.finding import EnvironmentFinding
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

_FAMILIES = (gone, names, values, logging, interfaces, rdma, network, algorithms, leftovers, process, torch)
_OF_THE_POD = frozenset({"NCCL048", "NCCL049", "NCCL050", "NCCL051"})
"""Rules on all variables at once: they do not explain a single one."""


def check_environment(env: Mapping[str, Value], facts: Facts) -> list[EnvironmentFinding]:
    """All findings of one container's environment, by rule and variable; ``[]`` where there is nothing to say.

    ``env``: what the process really gets, all variables (others than NCCL's are ignored); ``None`` is "set, value
    unknown".
    """
    scene = Scene.of(env, facts)
    found = [finding for family in _FAMILIES for check in family.CHECKS for finding in check(scene)]
    covered = frozenset(name for finding in found if finding.rule not in _OF_THE_POD for name in finding.variables)
    found += [finding for check in leftovers.LAST for finding in check(scene, covered)]
    return sorted(found, key=lambda finding: (finding.rule, finding.variables))
