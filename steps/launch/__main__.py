"""``python -m argosy.steps.launch``: one node of a gang."""

from __future__ import annotations

import os
import signal
import sys

from argosy.steps.contract.exit_codes import ExitCode


def main() -> int:
    """The pod's exit code."""
    # The kernel keeps from a container's first process what it has no handler for: told to stop while it imports the
    # rest, half a second and more, the pod would live out its grace.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(int(ExitCode.PREEMPTED)))
    from argosy.steps.contract.arguments import LaunchArgs
    from argosy.steps.launch.node import launch
    from argosy.steps.outputs import step_main

    return step_main(LaunchArgs, launch)


if __name__ == "__main__":
    sys.exit(main())
