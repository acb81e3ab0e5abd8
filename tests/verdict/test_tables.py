"""States in the tables of schedulers name a cause, and only where they end a job."""

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.verdict.match import match_line

_SACCT = {
    "BOOT_FAIL": Cause.PREEMPTED_EVICTED,
    "CANCELLED": None,
    "COMPLETED": None,
    "DEADLINE": Cause.DEADLINE_EXCEEDED,
    "FAILED": None,
    "NODE_FAIL": Cause.PREEMPTED_EVICTED,
    "OUT_OF_MEMORY": Cause.HOST_OOM,
    "PENDING": None,
    "PREEMPTED": Cause.PREEMPTED_EVICTED,
    "RUNNING": None,
    "SUSPENDED": None,
    "TIMEOUT": Cause.DEADLINE_EXCEEDED,
}
"""https://slurm.schedmd.com/job_state_codes.html, the base states."""


@pytest.mark.parametrize(("state", "cause"), _SACCT.items())
def test_a_state_of_slurm_beside_an_exit_code(state: str, cause: Cause | None) -> None:
    found = match_line(f"3826         train    compute     team         16  {state}      0:0")
    assert (found.cause if found else None) == cause
    assert match_line(f"waiting while {state} is what the job says") is None


def test_phases_that_kubectl_prints() -> None:
    for said, cause in (
        ("trainer-0      0/1     Pending   0          5m33s", Cause.UNSCHEDULABLE),
        ("team    trainer-0      0/1     Pending   0          5m33s", Cause.UNSCHEDULABLE),
        ("trainer-0      1/1     Running   0          5m33s", None),
        ("data    Pending                                      gp3      21m", Cause.VOLUME_MOUNT),
        ("data    Bound     pvc-1    10Gi     RWO              gp3      21m", None),
    ):
        found = match_line(said)
        assert (found.cause if found else None) == cause, said
