"""How a process ended, in the words of what started it: torchrun, DeepSpeed, mpirun, Slurm, shells, the kubelet."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

_LATE = Weight.MESSENGER


def _ended(signals: str, names: str) -> str:
    """What each launcher prints for a child that a signal of these numbers and names ended."""
    shell = "|".join(str(128 + int(number)) for number in signals.split("|"))
    return (
        rf"\b(exit ?)?code\s*:? ?-({signals})\b|(return|exit|error) code ?[=:]? ?-({signals})\b"
        rf"|(terminated|killed|died|exited) (with|by|on) signal:? ({signals})\b"
        rf"|Signals\.SIG({names})\b|Signal ({signals}) \(SIG"
        rf"|(terminated|killed|died|ended|exited) (with|by|on|due to) (signal:? )?SIG({names})\b"
        rf"|(?i:exit(ed)? ?(with )?(code|status)\"?:?)\s+({shell})\b|interrupted by signal ({signals})\b"
    )


PATTERNS = (
    Pattern(
        Cause.UNKNOWN,
        r"^argosy: process \d+, a worker of Ray on this node, was the first to end",
        "argosy: process 4711, a worker of Ray on this node, was the first to end, and nobody says why",
        _LATE,
    ),
    Pattern(
        Cause.UNKNOWN,
        r"A worker died or was killed|[Tt]here are some potential root causes|Worker exit type: SYSTEM",
        "A worker died or was killed while executing a task by an unexpected system error. There are some potential",
        Weight.SUMMARY,
    ),
    Pattern(
        Cause.PREEMPTED_EVICTED,
        r"(?i)because its (owner's )?node has (died|crashed)|owner's node has crashed"
        r"|lame workers found|\bnode was (preempted|drained|reclaimed)"
        r"|(spot|instance) (interruption|preemption|termination) notice",
        "the actor's node was preempted: simulating node drain",
    ),
    Pattern(
        Cause.SIGTERM,
        r"Received (\d+|Signals\.SIG\w+) death signal|closing signal SIG(HUP|INT)\b|got signal: (1|2|3|15)\b"
        r"|SIGTERMException"
        r"|[Rr]eceived (a )?(SIGTERM|SIGINT|SIGHUP|signal (1|2|15)\b)|[Cc]aught (SIGTERM|SIGINT|signal (2|15)\b)",
        "W1130 12:13:49 torch/distributed/elastic/agent/server/api.py:723] Received 15 death signal, shutting down",
        _LATE,
    ),
    Pattern(
        Cause.SIGTERM,
        r"\*\*\* (JOB|STEP) \S+ ON \S+ CANCELLED AT \S+( \*|$)|^KeyboardInterrupt\b|^Terminated$|exited on signal (1"
        r"|2|15)\b|Signals\.SIG(HUP|INT|TERM)\b|((with|by|on) signal|stopped by) SIG(HUP|INT|TERM)\b"
        r"|line \d+:\s+\d+ (Hangup|Interrupt|Terminated)\s|(?i:exit(ed)? ?(with )?(code|status):?)\s+(129|130|143)\b",
        "slurmstepd: error: *** JOB 60601445 ON node1 CANCELLED AT 2022-05-17T17:58:10 ***",
        _LATE,
    ),
    Pattern(
        Cause.SHM_EXHAUSTED,
        _ended("7", "BUS"),
        "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -7) local_rank: 0 (pid: 108)",
        _LATE,
    ),
    Pattern(
        Cause.NATIVE_CRASH,
        _ended("4|5|6|8|11|31", "SEGV|ABRT|FPE|ILL|TRAP|SYS")
        + r"|Segmentation fault( \(core dumped\)|$)|Aborted \(core dumped\)"
        r"|line \d+:\s+\d+ (Aborted|Illegal instruction|Floating point exception)\b"
        r"|exit (status|code) (3221225477|3221226505|-1073741819)\b",
        "  exitcode  : -11 (pid: 6421)",
        _LATE,
    ),
    Pattern(
        Cause.UNKNOWN,
        _ended("9", "KILL") + r"|^Killed\b|line \d+:\s+\d+ Killed\s",
        "mpirun noticed that process rank 7 with PID 0 on node h exited on signal 9 (Killed).",
        _LATE,
    ),
    Pattern(  # the node's own daemon, about files and processes of its own: never the program's
        Cause.UNKNOWN,
        r"slurmstepd: error: (_?(container_[pg]|fork\w*|join)_\w+|.*/slurm_script:|execve\(\): \S*/slurm_script:)",
        "slurmstepd: error: execve(): /tmp/slurmd/job2997814/slurm_script: No such file or directory",
        _LATE,
    ),
    Pattern(
        Cause.UNKNOWN,
        r"ChildFailedError|DUE TO TASK FAILURE|Sending process \d+ closing signal|Closing process \d+ via signal"
        r"|CalledProcessError"
        r"|exited with non-zero status|(exitcode|return code)\s*[=:] ?[1-9]\d*\b|Worker group failed"
        r"|ProcessExitedException|Killing subprocess|a non-zero exit code\. Per user-direction|returned non-zero exit"
        r"|Worker \d+ has failed|The actor is dead because its worker process has died"
        r"|(ActorDied|RayActor|WorkerCrashed|TrainingFailed)Error",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        Weight.SUMMARY,
    ),
)
