"""A torchrun that has imported itself and waits for its arguments: ``python -m argosy.steps.launch.standby``.

Importing torch takes seconds; here it happens while the pod waits for its peers, its data and its orders. Each
restart still gets an agent of its own that has never run anything.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback


def main() -> None:
    """Read one JSON line {"argv", "env", "cwd"} from stdin, then be torchrun; at end of file end."""
    gc.disable()  # a fifth of the import would be looking for garbage among what stays
    from torch.distributed import run

    gc.freeze()
    gc.enable()
    raw = sys.stdin.buffer.readline()
    if not raw:
        return
    order = json.loads(raw)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    try:
        run.main(order["argv"])
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(bool(ending.code))
    except BaseException:
        traceback.print_exc()
        code = 1
    # Tearing torch down takes longer than it is worth: nothing of ours is left to be written.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
