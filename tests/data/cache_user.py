"""A process that uses a dataset through a cache: says ``using FETCHED`` when it has it, ends at a line on stdin.

    python cache_user.py MANIFEST ROOT WHO [JSON of Cache's other fields]

$CACHE_AT = "EVENT WORD COUNT SIGNAL" sends itself a signal just before the system call behind the COUNTth audit event
of that name (``*``: any of CALLS) that has WORD among its arguments (``*``: any): a kill, or a stop, exactly there.
$CACHE_EVENTS = FILE writes down how many events of which name there were. $CACHE_BOOK = RUN keeps the
dataset for that run for ten minutes.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import sys
from pathlib import Path

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.cache.use import Cache, use
from argosy.steps.data.manifest import DatasetManifest

CALLS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.utime", "os.listdir", "fcntl.flock")


def watch() -> collections.Counter[str]:
    """Count the events from here on, and die or stop where we are told to."""
    event, word, count, number = (os.environ.get("CACHE_AT") or "- - 0 0").split()
    seen: collections.Counter[str] = collections.Counter()

    def hook(name: str, args: tuple[object, ...]) -> None:
        if name not in CALLS or (word != "*" and not any(word in str(arg) for arg in args)):
            return
        for each in (name, "*"):
            seen[each] += 1
        if event in (name, "*") and seen[event] == int(count):
            os.kill(os.getpid(), getattr(signal, f"SIG{number}"))

    sys.addaudithook(hook)
    return seen


def main() -> int:
    """Exit code of the cause when the cache refuses."""
    manifest, root, who, *rest = sys.argv[1:]
    fields = json.loads(rest[0]) if rest else {}
    dataset = DatasetManifest.from_bytes(Path(manifest).read_bytes())
    seen = watch()
    try:
        run = os.environ.get("CACHE_BOOK", "")
        with use(Cache(Path(root), **fields), dataset, dataset, who=who, run=run, book_seconds=600.0) as used:
            print(f"using {used.result.fetched_bytes} {used.path}", flush=True)
            sys.stdin.readline()
    except StepError as error:
        print(f"refused {error.cause} {error}", flush=True)
        return int(error.code)
    except InputError as error:
        print(f"refused {error}", flush=True)
        return 2
    found = dict(seen)
    if "CACHE_EVENTS" in os.environ:
        Path(os.environ["CACHE_EVENTS"]).write_text(json.dumps(found))
    print("done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
