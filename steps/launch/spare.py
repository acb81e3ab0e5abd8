"""What a pod without a rank does while it stands by: code and data are made ready, so that any rank can begin here.

torch is imported meanwhile by the agent on standby, as in every pod that waits.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Literal

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import StandBy
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.launch.identity import Identity
from argosy.steps.launch.prepare import prepare_code, prepared_data
from argosy.steps.store import open_store


class _GivenUp(Exception):
    pass


def _tell_nobody(kind: str, **fields: Any) -> None:
    """The run's log tells of the staging of ranks."""


class Spare:
    """Prepares in a thread of its own until it is ended; a cache evicts nothing of it meanwhile."""

    def __init__(self, args: LaunchArgs, identity: Identity, wanted: StandBy) -> None:
        self._identity = identity
        self._args, self._wanted = args, wanted
        self._over = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._prepare, name="spare", daemon=True)
        self._thread.start()

    @property
    def state(self) -> Literal["preparing", "ready"]:
        """How far it has come."""
        return "ready" if self._ready.is_set() else "preparing"

    def end(self) -> None:
        """Let go; what is there already stays there for the rank."""
        self._over.set()
        self._thread.join()

    def _go_on(self) -> None:
        if self._over.is_set():
            raise _GivenUp

    def _prepare(self) -> None:
        args = self._args
        try:
            store = open_store(args.store_uri)
            prepare_code(args, store)
            if args.layout == "sharded" and args.staging == "node":
                self._stand(" without data: each node has its own, which is fetched with the rank")
                return
            with prepared_data(args, self._wanted, store, self._identity, _tell_nobody, self._go_on):
                self._stand("")
        except _GivenUp:
            return
        except (StepError, InputError, OSError) as error:
            # A rank would meet it again, and says so in its report; until then the spare is as good as a new pod.
            print(f"argosy: standing by, not ready: {error}", file=sys.stderr, flush=True)

    def _stand(self, how: str) -> None:
        print(f"argosy: standing by on {self._identity.node}{how}", flush=True)
        self._ready.set()
        self._over.wait()
