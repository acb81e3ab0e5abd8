"""What a training script gives away about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from argosy.workflows.script.account import Seen
from argosy.workflows.script.data import DataFacts
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.lines import Loop
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.ranks import Spread
from argosy.workflows.script.resuming import resume_flag
from argosy.workflows.script.trainer import TrainerFacts


@dataclass(frozen=True)
class ScriptFacts:
    """What was found; places are ``line 12`` of the script or ``utils.py:12`` of a module beside it."""

    flags: tuple[Flag, ...]
    saves: tuple[SavedAt, ...]
    unclear_saves: tuple[tuple[str, Flag | None], ...]
    """Where it saves to a path which only a run could tell, and the flag that would tell it."""
    checkpointer: tuple[str, bool] | None
    """Where it uses argosy.Checkpointer, and whether a call may say of a save that it is the last."""
    init_from: str | None
    """Where nanoGPT's init_from == "resume" stands."""
    loads: str = ""
    """Where it loads by itself what it saved."""
    skipped_turns: str = ""
    """Where it leaves out each turn of a loop whose file is there."""
    end: int | None = None
    """The last step it would report, as its flags say: an epoch if it prints epochs only. None: not known."""
    trainer: TrainerFacts | None = None
    """The library that saves for it."""
    data: DataFacts | None = None
    """How it is told where its data lie."""
    own_ranks: tuple[str, int] = ("", 1)
    """Where it starts or counts its ranks itself, whatever torchrun says; how many it is to be started as on a node."""
    ranks: Spread = field(default_factory=Spread)
    """How it comes to its group of ranks."""
    launched: tuple[str, Flag] | None = None
    """Where it takes its rank from a flag that a launcher before torchrun gave, and the flag."""
    launcher: Flag | None = None
    """The flag that says that torchrun starts its ranks, where it is not given."""
    restored_by: Flag | None = None
    """The flag with the path of what it loads, where nothing in its name says that it resumes."""
    asks: str = ""  # where it waits for what somebody types
    alone: bool = False  # whether its ranks know nothing of each other
    made: tuple[bool, tuple[str, str] | None] = (False, None)
    """Whether nothing seems to make the folder that it saves into; where each start makes one, and which, that is not
    to be there already.
    """
    skipped: frozenset[str] = frozenset()
    """Where calls stand that a run does not come to, as the flags and settings are."""
    sure: frozenset[str] = frozenset()
    """Where calls stand that it comes to from its first line."""
    removed: tuple[str, str] | None = None  # where it removes at each start what it saves into, and the folder
    barred: tuple[str, str] | None = None  # where it ends if a folder that it saves into is there, and the test
    keys: Mapping[str, str] = field(default_factory=dict)
    """The keys of files of settings, and the file of each."""
    of_model: tuple[Flag, str] | None = None
    """The flag with the path of a model that it begins with, and the place."""
    newest: Mapping[str, str] = field(default_factory=dict)
    """Flag -> the word that makes it look for its newest checkpoint."""
    variables: tuple[str, ...] = ()
    """Variables of the environment that may say where it writes."""
    opened: tuple[Mapping[str, str], frozenset[str]] = field(default_factory=lambda: ({}, frozenset()))
    """The files that it reads, and where it does; those that it writes itself."""
    folders: frozenset[str] = frozenset()
    """The flags that name the folder of what is loaded."""
    endings: Mapping[str, str] = field(default_factory=dict)
    """The flags that name a file in a folder that is known, and what is put behind the name, or else that folder."""
    files: frozenset[str] = frozenset()
    """The flags that name the file that is loaded."""
    tells: bool = False  # whether a callback of ours tells each step
    not_loaded: str = ""  # what it does not load, where it gives no state to anything but models
    finals: frozenset[str] = frozenset()  # what it saves only behind the loops that train
    begins_at: tuple[str, Flag, bool] | None = None
    """Where its loop begins at a number that only a flag says, the flag, and whether its files are numbered so."""
    needs: Mapping[str, tuple[str, Flag]] = field(default_factory=dict)
    """A flag, where the script ends if another is not given with it, and the other."""
    at_end: str = ""  # where it saves, if that is only behind the loops that train
    loop: Loop | None = None
    """Where it counts its epochs or steps; none where a library owns the ranks,
    whose own calls save and load."""
    counting: Loop | None = None  # the same, whatever it trains
    written: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The value of a setting -> its whole key and its file."""
    unread: frozenset[str] = frozenset()
    """Flags that nobody asks for between its first line and its saves."""
    seen_saves: tuple[Seen, ...] = ()
    """What it saves, in its own words."""
    seen_loads: tuple[Seen, ...] = ()
    """What it reads of a library's making, in its own words."""
    restores: bool = False
    """Whether it gives an optimizer its state, or asks a library to."""
    may_save: tuple[tuple[str, str], ...] = ()
    """What is called as a folder of saves is, and the folder."""
    may_go_on: tuple[str, ...] = ()
    """What is called as what makes a script go on."""
    set_off: tuple[str, str] | None = None
    """The line that keeps it from its saves, whatever the flags are, and what stands there."""
    ended: tuple[str, Flag] | None = None
    """Where it raises as its flags are, and the flag that this asks for."""
    started: str = ""
    """What it needs to find its modules: to be one itself, or the folder that it is called in in their path."""
    modules: tuple[Path, ...] = ()  # its own file, and those of what it imports
    stays: tuple[str, str] = ("", "")
    """Where it is handed to Hydra, which gives each start a working directory of its own; or the one that is told."""

    def flag(self, name: str) -> Flag:
        """The flag of that name."""
        return next(flag for flag in self.flags if flag.name == name)

    def resume_flag(self) -> Flag | None:
        """The flag that makes the script go on from its checkpoint."""
        flags = [flag for flag in self.flags if flag.attribute not in self.unread]
        return resume_flag(flags, self.trainer.resume_flags if self.trainer else ()) or (
            None if self.trainer else self.restored_by
        )
