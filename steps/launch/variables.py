"""What the ranks will find in their environment about the network, and what is wrong with it: told once by a node."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment
from argosy.steps.launch.reporter import Reporter
from argosy.steps.nccl.effective import Variable

MOST_TOLD: Final = 200
_TOLD_LEVELS: Final = ("error", "warning")
"""Notes are for ``argosy lint``, where somebody is about to change the file."""


def tell_variables(
    effective: Sequence[Variable], args: LaunchArgs, assignment: Assignment, reporter: Reporter, fabric: str
) -> None:
    """Print the variables with where they come from, and put them into the run's event log; silent without any.

    Once per pod: a restart on the same pod finds the same. ``fabric`` is the profile's name, or empty.
    """
    if not effective or assignment.restart > 0:
        return
    variables = [str(variable) for variable in effective[:MOST_TOLD]]
    own = frozenset(args.fabric_variables.split(","))
    found = findings(effective, assignment.nnodes, fabric, own)[:MOST_TOLD]
    for text in (*variables, *found):
        print(f"argosy: environment: {text}", flush=True)
    reporter.event(
        "environment",
        attempt=assignment.attempt,
        restart=assignment.restart,
        node=reporter.node,
        variables=variables,
        findings=found,
    )


def findings(effective: Sequence[Variable], nnodes: int, fabric: str, own: frozenset[str]) -> list[str]:
    """What the checks of ``argosy lint`` say of the environment as it really is, files of the image included.

    ``own``: variables of the fabric profile. Each has its source there; only what they do to others is a finding.
    """
    # Imported here: a run without such variables starts without the tables.
    from argosy.steps.launch.pod_facts import pod_facts
    from argosy.steps.nccl.checks import check_environment

    environ = {each.name: each.value for each in effective} | dict(os.environ)
    return [
        f"{found.level} {found.rule}: {found.message}; {found.remedy}"
        for found in check_environment(environ, pod_facts(nnodes, fabric))
        if found.level in _TOLD_LEVELS and not own.issuperset(found.variables)
    ]
