"""The step: ``python -m argosy.steps.supervise --gang=PATH``."""

from __future__ import annotations

import sys

from argosy.steps.cluster.connecting import connect
from argosy.steps.contract.arguments import SuperviseArgs
from argosy.steps.outputs import step_main
from argosy.steps.supervise.run import run

if __name__ == "__main__":
    sys.exit(step_main(SuperviseArgs, lambda args: run(args, connect())))
