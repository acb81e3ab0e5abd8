"""``python -m argosy.steps.launch``: one node of a gang."""

from __future__ import annotations

import sys

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.launch.node import launch
from argosy.steps.outputs import step_main

if __name__ == "__main__":
    sys.exit(step_main(LaunchArgs, launch))
