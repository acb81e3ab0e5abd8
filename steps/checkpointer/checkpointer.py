"""The training script's checkpoints: ``restore``, ``due``, ``save``; every rank constructs it and calls all three."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy.steps import progress
from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import Saved
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.ranks import Ranks
from argosy.steps.checkpointer.restoring import Restored, Restoring
from argosy.steps.checkpointer.saving import Save
from argosy.steps.checkpointer.stopping import stop_for
from argosy.steps.contract import env
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.paths import resolve
from argosy.steps.state.files import read_state
from argosy.steps.store.opening import open_store

DEFAULT_KEEP = 3


class Checkpointer:
    """Checkpoints of a training whose ranks all hold the same state (data parallel).

    Inside argosy everything comes from the environment. Outside, ``Checkpointer(path="ckpts")`` keeps checkpoints in
    a local folder and resumes from the newest intact one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        every: int | None = None,
        keep: int | None = None,
        save_rng: bool = False,
    ) -> None:
        """``path``: folder for use outside argosy (inside, the run's store is used and ``path`` ignored).

        ``every`` steps (0: never due) and ``keep`` checkpoints: the run's own settings where it has some.
        ``save_rng``: also keep and restore each rank's random generators (Python, NumPy, torch).

        Raises:
            InputError: outside argosy without ``path``; a setting that is not a number.
        """
        uri = os.environ.get(env.RUN_URI, "")
        if not uri and path is None:
            raise InputError(f"Checkpointer outside argosy: {env.RUN_URI} is not set; write Checkpointer(path='ckpts')")
        self._managed = bool(uri)
        self._store = CheckpointStore(open_store(uri or Path(path or "").absolute().as_uri()), "")
        self._every = _setting(env.CHECKPOINT_EVERY, every, 0)
        self._keep = max(1, _setting(env.CHECKPOINT_KEEP, keep, DEFAULT_KEEP))
        self._save_rng = save_rng
        self._claim: Claim | None = None

    def due(self, step: int) -> bool:
        """Whether a checkpoint is wanted after step ``step`` (counted from 1)."""
        return self._every > 0 and step > 0 and step % self._every == 0

    # ---- restore

    def restore(self, into: Mapping[str, Any] | None = None, *, strict: bool = True) -> Restored | None:
        """The state to go on from, or None to start from scratch. Collective; every byte is verified before use.

        ``into``: a state as it would be saved. Its tensors (DTensors too, in any placement, at any world size) are
        filled where they lie, and a rank reads only the files that hold what it needs; ``Restored.state`` is the same
        tree with the checkpoint's numbers and strings. Without it, whole tensors are made on the CPU. ``strict=False``
        leaves tensors that the checkpoint lacks as they are and skips those that ``into`` lacks.

        A corrupt shard ends every rank with exit code 72 and the line
        ``argosy: checkpoint_corrupt digest=… shard=…``; argosy then restarts from the checkpoint before.

        Raises:
            InputError: ``into`` differs from the checkpoint in names, shapes or types; nothing was filled.
            Stopped: the checkpoint is damaged or the store failed; on all ranks.
        """
        restoring = Restoring(self._store, Ranks(), random=self._save_rng)
        if self._managed:
            return restoring.run(os.environ.get(env.RESUME_DIGEST, ""), into, strict=strict)
        return restoring.run_newest(into, strict=strict)

    @staticmethod
    def load(path: str | os.PathLike[str] | None = None) -> Restored:
        """The state in a folder of fetched files (evaluation); ``path`` defaults to $ARGOSY_CHECKPOINT_PATH.

        The files were verified when they were fetched.

        Raises:
            InputError: no folder, or no state of a Checkpointer in it.
        """
        given = path if path is not None else os.environ.get(env.CHECKPOINT_PATH, "")
        if not str(given):
            raise InputError(f"Checkpointer.load: no path given and {env.CHECKPOINT_PATH} is not set")
        folder = Path(given) if path is not None else resolve(str(given))
        try:
            step, state = read_state(lambda name: bytearray((folder / name).read_bytes()))
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"{folder} holds no state saved by Checkpointer: {error}") from error
        return Restored(step, state)

    # ---- save

    def save(self, step: int, state: Mapping[str, Any], *, final: bool = False) -> Saved:
        """Save and commit; durable when it returns. Collective: every rank calls it with the same state.

        Each rank writes its share of the tensors. ``state``: nested dicts and lists of tensors, arrays, numbers and
        strings; numbers and strings are rank 0's. ``final``: this checkpoint is the training's result.

        Raises:
            InputError: a value that has no place in a checkpoint (on every rank that has it).
            Stopped: fenced by a newer generation (73), or the store failed (its cause's code); on all ranks.
        """
        began = time.monotonic()
        ranks = Ranks()
        save = Save(self._store, ranks, self._claimed, save_rng=self._save_rng)
        saved = save.run(step, state, final=final)
        if ranks.rank == 0:
            seconds = time.monotonic() - began
            progress.committed(
                step,
                digest=saved.digest,
                size=saved.bytes,
                seconds=seconds,
                final=final,
                generation=saved.generation,
            )
            self._prune()
        return saved

    def _claimed(self) -> Claim:
        if self._claim is None and self._managed:
            generation, seq = os.environ.get(env.GENERATION, ""), os.environ.get(env.LOG_SEQ, "")
            if not generation.isdigit() or not seq.isdigit():
                raise InputError(f"{env.GENERATION} and {env.LOG_SEQ} are not set: only a train step may save")
            self._claim = Claim(int(generation), int(seq))
        elif self._claim is None:
            self._claim = self._store.claim(f"{socket.gethostname()}:{os.getpid()}")
        return self._claim

    def _prune(self) -> None:
        try:
            self._store.prune(self._keep, self._claim)
        except StepError as error:
            if error.cause is Cause.FENCED:
                stop_for(error)
            print(f"argosy: old checkpoints not removed: {error}", file=sys.stderr, flush=True)


def _setting(name: str, given: int | None, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default if given is None else given
    if not text.isdigit():
        raise InputError(f"{name} = {text!r}: a whole number is needed")
    return int(text)
