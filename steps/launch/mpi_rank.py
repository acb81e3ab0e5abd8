"""Between mpirun's daemon and the rank shim: ``python -m argosy.steps.launch.mpi_rank -- MODULE -- COMMAND...``.

It gives the shim what torchrun would (numbers of the rank, the node's working directory), and the pod's own log:
mpirun collects what ranks print on node 0. Standard library only: it starts with every rank.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys

OUTPUT = "ARGOSY_MPI_OUTPUT"
FOLDER = "ARGOSY_MPI_FOLDER"
_NUMBERS = {
    "RANK": "OMPI_COMM_WORLD_RANK",
    "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
}


def main() -> None:
    """Be the module that follows."""
    output = os.environ.pop(OUTPUT)
    with contextlib.suppress(OSError):  # then mpirun passes it on, from node 0's pod
        log = os.open(output, os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
    os.chdir(os.environ.pop(FOLDER))
    os.environ.update({name: os.environ[source] for name, source in _NUMBERS.items()})
    module = sys.argv[2]
    sys.argv = [module, *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
