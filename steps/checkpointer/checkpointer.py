"""The training script's checkpoints: ``restore``, ``due``, ``save``; every rank constructs it and calls all three."""

from __future__ import annotations

import functools
import os
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from argosy.steps import progress
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.claims import Claims, given_claim
from argosy.steps.checkpointer.commits import remove_old
from argosy.steps.checkpointer.interval import Schedule, failure_hours
from argosy.steps.checkpointer.joining import Terms
from argosy.steps.checkpointer.ranks import Ranks
from argosy.steps.checkpointer.restoring import Restored, Restoring
from argosy.steps.checkpointer.saver import Saver
from argosy.steps.checkpointer.saving import Saving
from argosy.steps.checkpointer.stopping import stop_for
from argosy.steps.contract import env
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.layout import seq_name
from argosy.steps.contract.numbers import whole
from argosy.steps.paths import resolve
from argosy.steps.state.files import read_state
from argosy.steps.store.opening import open_store

DEFAULT_KEEP = 3
DEFAULT_TIMEOUT = 900
"""Seconds that the ranks' writers wait for the slowest of them."""


class Checkpointer:
    """Checkpoints of a training whose ranks all hold the same state (data parallel).

    Inside argosy everything comes from the environment. Outside, ``Checkpointer(path="ckpts")`` keeps checkpoints in
    a local folder and resumes from the newest intact one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        every: int | Literal["auto"] | None = None,
        keep: int | None = None,
        save_rng: bool = False,
        asynchronous: bool = True,
    ) -> None:
        """``path``: folder for use outside argosy (inside, the run's store is used and ``path`` ignored).

        ``every`` steps (0: never due; "auto": from what a save costs and how often gangs fail) and ``keep``
        checkpoints (0: all): the run's own settings where it has some. ``save_rng``: also keep and restore each
        rank's random generators (Python, NumPy, torch). ``asynchronous``: a save is stored by a process of its own
        while training goes on, which takes as much shared memory as this rank saves; False: ``save`` waits, and
        needs little memory.

        Raises:
            InputError: outside argosy without ``path``; a setting that is not a number.
        """
        chosen = every if every is None or every == "auto" else str(whole("every", every, 0))
        wanted = DEFAULT_KEEP if keep is None else whole("keep", keep, 0)
        uri = os.environ.get(env.RUN_URI, "")
        if not uri and path is None:
            raise InputError(f"Checkpointer outside argosy: {env.RUN_URI} is not set; write Checkpointer(path='ckpts')")
        if not uri and not str(path):  # mostly a variable that is not set
            raise InputError("path = '': names no folder; write Checkpointer(path='ckpts'), or '.' for the current one")
        if not uri and "://" in str(path):
            remedy = "name one as 'ckpts'; a run keeps its checkpoints in the store of its [storage] uri"
            raise InputError(f"path = {str(path)!r}: outside argosy a folder of this machine is needed; {remedy}")
        self._managed = bool(uri)
        store = uri or Path(path or "").absolute().as_uri()
        self._store = CheckpointStore(open_store(store), "")
        self._save_rng = save_rng
        self._asynchronous = asynchronous
        setting = os.environ.get(env.CHECKPOINT_EVERY, "")
        if chosen is not None and setting in ("", "0"):  # a run that says 0 leaves it to the script
            setting = chosen
        self._schedule = Schedule(0) if setting == "auto" else None
        self._every = 0 if setting == "auto" else _number(env.CHECKPOINT_EVERY, setting, 0)
        self._keep = _number(env.CHECKPOINT_KEEP, os.environ.get(env.CHECKPOINT_KEEP, ""), wanted)
        self._ended_at: int | None = None
        self._claims = Claims(self._store, managed=self._managed)
        terms = Terms(
            uri=store,
            keep=self._keep,
            timeout=_number(env.CHECKPOINT_TIMEOUT, os.environ.get(env.CHECKPOINT_TIMEOUT, ""), DEFAULT_TIMEOUT),
            failure_hours=failure_hours if self._schedule is not None else None,
        )
        claimed = functools.partial(self._claims.claim, "Checkpointer.save")
        self._saver = Saver(self._store, terms, claimed, asynchronous=asynchronous, save_rng=save_rng)
        weakref.finalize(self, self._saver.release).atexit = False

    def due(self, step: int) -> bool:
        """Whether a checkpoint is wanted after step ``step`` (counted from 1). Call it after every step, on every rank.

        Raises:
            Stopped: the checkpoint before could not be stored, or a newer generation rules; on every rank after the
            same step.
        """
        step = whole("step", step)
        if self._schedule is None and self._every == 0:
            return False
        if self._asynchronous:
            self._saver.start()  # its first seconds pass while training does
        self._saver.look(step)
        if self._schedule is not None:
            return step > 0 and self._schedule.due(step)
        return step > 0 and step % self._every == 0

    # ---- restore

    def restore(self, into: Mapping[str, Any] | None = None, *, strict: bool = True) -> Restored | None:
        """The state to go on from, or None to start from scratch. Collective; every byte is verified before use.

        ``into``: a state as it would be saved. Its tensors (DTensors too, in any placement, at any world size) are
        filled where they lie, and a rank reads only the files that hold what it needs; ``Restored.state`` is the same
        tree with the checkpoint's numbers and strings. Without it, whole tensors are made on the CPU. ``strict=False``
        leaves tensors that the checkpoint lacks as they are and skips those that ``into`` lacks.

        A corrupt shard ends every rank with exit code 72 and the line
        ``argosy: checkpoint_corrupt digest=… shard=…``; argosy then restarts from the checkpoint before. Outside argosy
        a damaged checkpoint is set aside and the one before is loaded, or None returned; but where it has filled a part
        of ``into`` that none before it fills again, every rank ends with 72 too, and the next start does not meet it.
        Where a newer generation rules and has pruned what was to be restored, every rank ends with 73 and the line
        that names it.

        Raises:
            InputError: ``into`` differs from the checkpoint in names, shapes or types, and nothing was filled; or it
            ties tensors that differ in the checkpoint.
            Stopped: the checkpoint is damaged or the store failed; on all ranks.
        """
        if os.environ.get(env.RESUME_DIGEST):
            progress.entered("restore")
        restoring = Restoring(
            self._store, Ranks(), random=self._save_rng, claim=given_claim() if self._managed else None
        )
        if self._managed:
            restored = restoring.run(os.environ.get(env.RESUME_DIGEST, ""), into, strict=strict)
        else:
            restored = restoring.run_newest(into, strict=strict)
        if restored is not None and self._schedule is not None:
            self._schedule = Schedule(restored.step)
        return restored

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
            if (folder / "log" / seq_name(1)).is_file():
                remedy = f"fetch one with argosy checkpoint get {folder} FOLDER, and load FOLDER"
                raise InputError(f"{folder} is where a Checkpointer saves, with many states; {remedy}") from error
            raise InputError(f"{folder} holds no state saved by Checkpointer: {error}") from error
        return Restored(step, state)

    # ---- save

    def prepare(self, state: Mapping[str, Any]) -> None:
        """Make the first save as cheap as later ones: writer started, memory in place. Collective.

        Call it once in the warm-up, when the state has its tensors (an optimizer's often come with the first step).

        Raises:
            InputError, Stopped: as :meth:`save` does.
        """
        self._saver.prepare(state)

    def save(self, step: int, state: Mapping[str, Any], *, final: bool = False, wait: bool | None = None) -> Saving:
        """Save and commit. Every rank calls it with the same state and may change it as soon as this returns.

        Each rank writes its share of the tensors. ``state``: nested dicts and lists of tensors, arrays, numbers and
        strings; numbers and strings are rank 0's. ``final``: this checkpoint is the training's result, and is
        committed when this returns. ``wait``: be committed on return, which ``asynchronous=False`` always is;
        else ``.wait()`` of the result does that. A save waits for the one before.

        Raises:
            InputError: a value that has no place in a checkpoint (on every rank that has it); a step that is no whole
            number or goes back; a call in a forked child, after ``close``, or from within another call; torch DCP has
            saved through this Checkpointer before (on all ranks).
            Stopped: this or the save before was fenced by a newer generation (73), or the store failed (its cause's
            code); on all ranks.
        """
        step = whole("step", step, 0)
        if not isinstance(state, Mapping):
            raise InputError(
                f"state = {type(state).__name__}: a dict is needed; write {{'model': model.state_dict(), …}}"
            )
        progress.entered("save")
        saving = self._saver.save(step, state, final=final)
        if self._ended_at is not None and not final and self._saver.rank == 0:
            text = f"step {step} is saved after step {self._ended_at}, which was to be the last (final=True)"
            print(
                f"argosy: {text}: give final=True to the last one, or the run has not succeeded",
                file=sys.stderr,
                flush=True,
            )
        self._ended_at = step if final else None
        if self._schedule is not None:
            news = self._schedule.saved(step, self._saver.decided())
            if news and self._saver.rank == 0:
                print(f"argosy: {news}", flush=True)
        if final or wait or not self._asynchronous:
            saving.wait()
        return saving

    def close(self) -> None:
        """Wait for the save that is under way, and let the writer go; the end of the process does it too.

        Raises:
            Stopped: as :meth:`save` does.
        """
        self._saver.close()

    def _prune(self) -> None:
        try:
            remove_old(self._store, self._keep, self._claims.made)
        except StepError as error:
            stop_for(error)


def _number(name: str, text: str, default: int) -> int:
    if not text:
        return default
    if not text.isdigit():
        raise InputError(f"{name} = {text!r}: a whole number is needed")
    return int(text)
