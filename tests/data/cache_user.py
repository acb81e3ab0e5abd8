"""A process that uses a dataset through a cache: says ``using FETCHED`` when it has it, ends at a line on stdin.

    python cache_user.py MANIFEST ROOT WHO [JSON of Cache's other fields]

Between "filling" (said at the first progress) and "using" it may be killed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.cache.use import Cache, use
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.data.staging import StageProgress


def main() -> int:
    """Exit code of the cause when the cache refuses."""
    manifest, root, who, *rest = sys.argv[1:]
    fields = json.loads(rest[0]) if rest else {}
    dataset = DatasetManifest.from_bytes(Path(manifest).read_bytes())
    said: list[bool] = []

    def tell(_: StageProgress) -> None:
        if not said:
            said.append(True)
            print("filling", flush=True)

    try:
        with use(Cache(Path(root), **fields), dataset, dataset, who=who, on_progress=tell) as used:
            print(f"using {used.result.fetched_bytes} {used.path}", flush=True)
            sys.stdin.readline()
    except StepError as error:
        print(f"refused {error.cause} {error}", flush=True)
        return int(error.code)
    except InputError as error:
        print(f"refused {error}", flush=True)
        return 2
    print("done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
