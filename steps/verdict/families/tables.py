"""States in the tables of schedulers: the whole list of `sacct`'s, and the phases in which a pod or a claim waits."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern


def _slurm(cause: Cause, states: str, example: str) -> Pattern:
    """A state of a job or a step (https://slurm.schedmd.com/job_state_codes.html), beside its exit code."""
    return Pattern(cause, rf"\b({states})\+? +\d+:\d+\b", example)


PATTERNS = (
    _slurm(
        Cause.PREEMPTED_EVICTED, "NODE_FAIL?|BOOT_FAIL?|PREEMPTED|REVOKED", "3826  nf-batch_+  1  NODE_FAIL      1:0"
    ),
    _slurm(Cause.HOST_OOM, r"OUT_OF_ME\w*", "2593.0  sh  2 OUT_OF_ME+      0:125"),
    _slurm(Cause.DEADLINE_EXCEEDED, "TIMEOUT|DEADLINE", "2593  train  gpu  16  TIMEOUT      0:0"),
    Pattern(  # who ended first, and no more: the launcher ends the others
        Cause.UNKNOWN,
        r"\bsrun: error: \S+ tasks? [\d,-]+: Exited with exit code [1-9]\d?$",
        "srun: error: node-2: task 0: Exited with exit code 1",
        Weight.CASCADE,
        ExitCode.TRANSIENT,
    ),
    Pattern(
        Cause.UNSCHEDULABLE,
        r"\b\d+/\d+ +Pending +\d+\b",
        "pod/trainer-0   0/1     Pending   0          5m33s",
        Weight.HINT,
    ),
    Pattern(
        Cause.VOLUME_MOUNT,
        r"\b(Pending|Lost) {5}.* \d+[smhdy]$",
        "airflow-volume-claim   Pending                     gp3-storageclass   <unset>      21m",
        Weight.HINT,
    ),
)
