"""Python's tracebacks in a log: which lines are the exceptions' words, and whose they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from argosy.steps.contract.causes import Cause
from argosy.steps.verdict.families.frames import is_of_the_program, library_of, may_be_about

_BEGIN = re.compile(r"(Original )?T?raceback \(most recent call last\)")
_MARGIN = re.compile(r"(\s*)(traceback +: )?$")
"""What stands before a traceback that is indented as a whole, like those of ranks in torchrun's summary."""
_CHAINED = re.compile(r"^(During handling of the above exception|The above exception was the direct cause)")
_FRAME = re.compile(
    r"^\s|^[+|]|^\S* ?[╭╰│❱]|^File [\"/~<]|^$|^(---|\.\.\.|\[\.\.\.\])|^\[?<ipython|^\[?~?/|^\.\.$|^\d*, in [\w<]"
    r"|^-+> ?\d|^Cell In\b|^\d+ frames$|^, line \d+"
)
_LAUNCHER = re.compile(
    r"(torch/distributed/(run|launch|elastic/(?!multiprocessing/errors)|launcher)|/bin/(torchrun|accelerate"
    r"|deepspeed|horovodrun)"
    r"|accelerate/commands/|deepspeed/launcher|torchelastic/|torch/multiprocessing/spawn(?!.* in _wrap\b))"
)
_WATCHER = re.compile(
    r"torch/multiprocessing/spawn\.py|torch/distributed/elastic/(agent|multiprocessing)/|deepspeed/launcher/"
    r"|/subprocess\.py|concurrent/futures/process\.py|joblib/externals/loky/|ray/(_private/worker|train/)"
)
"""Where the innermost frame is one of these, the exception reports the end of another process."""
_REPORTING = re.compile(
    r"(\w+\.)*\w*(Error|Exception): .*\b(exit(ed|s)?|died|returned|terminated|failed|finished) with (a "
    r"|an )?(non-?zero|exit"
    r"|return|status|error code|code|signal)\b"
    r"|(\w+\.)*(Runtime\w*Error|\w*Exception|\w+FailedError): .*\b(worker|process|rank|actor|job|trial|child|subprocess"
    r"|engine|node|pod|container)(es|s|ren)?\b( \S+){0,4} (failed|died|exited|crashed|(was|were|got|been) killed"
    r"|is dead|terminated)\b"
)
"""So does one that says that something ended with a code, or that another process did not live."""
_CALL = re.compile(r"\S+\.py\S*.*\bin [\w<]|^\s*File ")
"""A frame, in Python's, IPython's or rich's words."""
_IMPORTING = re.compile(r"\s*(from \S+ )?import\b|\s*__import__\(")
_LOOKED_UP = re.compile(r"load_state_dict\(\w+\[|\b(checkpoint|ckpt|state_dict|saved|resume)\w*\[['\"]")
"""The code of a frame that asks a checkpoint for one of its parts."""
_RAISING = re.compile(r"\s*raise ((?:\w+\.)*[A-Z]\w*)")
_HEADING = re.compile(r"(?:(?:\w+\.)*RayTaskError\()?((?:\w+\.)*[A-Z]\w*)\)?(?::| +Traceback \()")
"""IPython and Ray name the class before the frames; Ray's own stands for the one in its brackets."""
_HEADLESS = re.compile(r'^[\s|]*File "[^"]+", line \d+, in ')
_EXCEPTION = re.compile(r"^(\w+\.)*([A-Z]\w*)?(Error|Exception|Timeout|Interrupt|Exit)\b")
"""What ends a traceback whose head the log no longer holds; a stack that was only printed ends in anything."""
_ENDING = r"(?i:error|exception|timeout|interrupt|iteration|exit|warning|failure|disconnected)"
_CLASS = re.compile(
    r"^([A-Za-z_]\w*\.)*[A-Z]\w*(\([\w.]+\))?:|^([a-z_]\w*\.)+\w+:|^([A-Za-z_]\w*\.)+[A-Z]\w*\s*$"
    rf"|^([A-Za-z_]\w*\.)*\w*{_ENDING}(\([\w.]+\))?(:|\s*$)"
)
"""What ends any other: a class, alone or before its message. Code that lost its margin, a name that the log's end cut
through and another rank's words are none, and would make the program guilty of whatever it was."""
_ODD = 8
"""So many lines may stand in a traceback that are neither frames nor its end."""
_WORDS = 8
"""An exception's message goes on for at most so many lines."""


@dataclass
class Raised:
    """One chain of exceptions that ended in one place.

    ``exceptions`` are the indices of the lines that name one, first raised first; ``words`` those and the lines of
    their messages, ``frames`` those of the calls. ``by_launcher``: the frames are those of what starts ranks, so it
    only reports that one died. ``below`` holds for each exception what its innermost frame of a known library is
    about, and the same for its last frame alone. ``cut``: what the frames are about where the log ends within them.
    """

    exceptions: list[int] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    by_launcher: bool = False
    below: list[tuple[Cause | None, Cause | None]] = field(default_factory=list)
    cut: Cause | None = None


@dataclass
class _Open:
    """Where one rank's output stands in a traceback."""

    raised: Raised | None = None
    inside: bool = False
    headless: bool = False
    beheaded: bool = False
    margin: str = ""
    heading: str = ""
    before: str = ""
    frames: int = 0
    spoken: int = 0
    chained: bool = False
    odd: int = 0
    last_words: int = -1
    watching: bool = False
    library: Cause | None = None
    innermost: Cause | None = None


def raised_in(plain: Sequence[str], ranks: Sequence[int | None]) -> list[Raised]:
    """Every chain of exceptions in lines without prefixes; ranks may interleave, and a log may end within one."""
    done: list[Raised] = []
    opened: dict[int | None, _Open] = {}
    for index, line in enumerate(plain):
        state = opened.setdefault(ranks[index], _Open())
        if state.last_words < 0:  # not every line of a rank bears its prefix
            state.last_words = max((other.last_words for other in opened.values()), default=-1)
        _feed(state, index, line, done)
    for state in opened.values():
        if state.inside and state.raised is not None and state.raised.frames:
            last = next((plain[at] for at in reversed(state.raised.frames) if plain[at]), "")
            importing = _IMPORTING.match(last) is not None
            said = _headed(state.heading, state.library) or state.library or _raising(last)
            state.raised.cut = Cause.IMPORT_ERROR if importing else said
    return done


def is_an_exception(line: str) -> bool:
    """Whether a line begins with an exception's class."""
    return _EXCEPTION.match(line) is not None


def _raised_there(line: str) -> bool:
    """Whether Ray passes on what a program's own mistake raised in another process."""
    named = _HEADING.match(line)
    return named is not None and "RayTaskError(" in line and is_of_the_program(named.group(1))


def _headed(heading: str, library: Cause | None) -> Cause | None:
    """What a log speaks for that ends below the name of a mistake in a program, whatever it came through."""
    named = _HEADING.match(heading)
    if named is None or not is_of_the_program(named.group(1)) or may_be_about(named.group(1), library):
        return None
    return Cause.USER_EXCEPTION


def _raising(code: str) -> Cause | None:
    """What a log speaks for that ends at the line of code which raises: for the program only what a mistake raises."""
    named = _RAISING.match(code)
    return Cause.USER_EXCEPTION if named and is_of_the_program(named.group(1)) else None


def _feed(state: _Open, index: int, line: str, done: list[Raised]) -> None:
    begin = _BEGIN.search(line)
    if begin:
        if state.raised is None or not (state.chained or begin.group(1)):
            state.raised = Raised()
            done.append(state.raised)
            state.frames = 0
        state.inside, state.chained, state.spoken, state.headless, state.odd = True, False, 0, False, 0
        before = _MARGIN.match(line[: begin.start()])
        state.margin, state.heading = before.group(1) if before else "", line
    elif _CHAINED.match(line):
        state.chained, state.inside, state.spoken = True, False, 0
        if state.raised is None and state.last_words >= 0:  # the beginning of this chain is no longer in the log
            state.raised = Raised([state.last_words], [state.last_words], below=[(None, None)])
            state.beheaded = True
            done.append(state.raised)
    elif state.raised is None and _HEADLESS.match(line):
        state.raised = Raised()
        done.append(state.raised)
        state.inside, state.headless, state.heading = True, True, state.before
        _frame(state, state.raised, index, line)
    elif state.inside and state.raised is not None:
        if _FRAME.match(line.removeprefix(state.margin)):
            _frame(state, state.raised, index, line)
        else:
            _named(state, state.raised, index, line.removeprefix(state.margin))
    elif state.spoken > 0 and state.raised is not None:
        state.raised.words.append(index)
        state.spoken = state.spoken - 1 if line else 0
    if line and not line[0].isspace() and any(character.isalpha() for character in line):
        state.last_words = index
    state.before = line


def _frame(state: _Open, raised: Raised, index: int, line: str) -> None:
    state.frames += 1
    raised.frames.append(index)
    if _CALL.search(line):
        state.innermost = library_of(line)
        if (state.library, state.innermost) == (Cause.S3_THROTTLE, Cause.HUB_NETWORK):
            state.innermost = state.library  # a store's client speaks to it through the libraries of any hub's
        state.library = state.innermost or state.library
    elif _LOOKED_UP.search(line):
        state.innermost = Cause.CHECKPOINT_MISMATCH
    raised.by_launcher |= state.frames <= 4 and _LAUNCHER.search(line) is not None
    if _CALL.search(line):
        state.watching = _WATCHER.search(line) is not None


def _named(state: _Open, raised: Raised, index: int, line: str) -> None:
    if not state.headless and not _CLASS.match(line):
        state.odd += 1
        state.inside = state.odd <= _ODD
        return
    state.inside = False
    if state.headless and not _EXCEPTION.match(line):
        state.raised = None
        return
    reports = state.watching or (not raised.exceptions and _REPORTING.match(line) is not None)
    raised.by_launcher |= reports and not _raised_there(line)
    state.watching = False
    if state.beheaded:  # whoever handles it tells whose code met it
        raised.below[0], state.beheaded = (state.library, None), False
    raised.exceptions.append(index)
    raised.below.append((state.library, state.innermost))
    state.library = state.innermost = None
    raised.words.append(index)
    state.spoken = _WORDS
